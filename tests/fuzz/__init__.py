"""Strangers: mutated frames over every port and carrier, and connections without end.

In reading order:

    seeds     valid frames of every call
    mutate    mutations of their bytes and fields
    parsers   mutated frames inside one process: parsers and handlers
    guided    the same, guided by the branches that frames reach
    ledger    what is done, in a file, so that a run can go on
    stages    drawn and guided frames, in processes of their own
    victim    servers that admit everybody
    doors     frames through the ports of a process
    thrower   a process that sends them
    crowd     a process of idle and slow connections
    honest    a trainer that is served meanwhile
    attack    all of these at a time
"""
