"""Cost of a plan: memory, traffic and CPU time, and the number of pservers a job takes.

In reading order:

    traffic    bytes of the calls of a step, by mode
    costs      CPU time of calls
    footprint  memory of tables
    loads      the load of each pserver and of each trainer
    sizing     the least sufficient number of pservers
    concerns   warnings about a plan or a cluster

Every function here is pure: no socket, thread, clock or environment.
"""
