"""Communicators: gradients to the pservers, parameters back to the trainer.

In reading order:

    cut_participant    a trainer's part in cuts
    watchable          counters, spans and backlog, for those who watch
    reads_behind       rows that come with the answer of a push
    base               the protocol that every communicator offers its trainer
    members            state of all trainers on a pserver, and patience with them
    requests           routing, requests and replies of one pserver, and calls to all of them
    base_communicator  state and calls that the modes share
    sync               one call a step: Sync (rounds) and HalfAsync
    async_             gradients queue and merge in the background: Async and Ssp
    geo                training on the trainer, changes pushed every few steps
    local              training without pservers: every table in this process
    collective         training without pservers by a group of trainers, which reduce gradients
    factory            communication mode to communicator
"""
