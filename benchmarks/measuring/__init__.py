"""Processes to measure, their resources, and the runs of `bin/bench`.

In reading order:

    harness          pserver and trainer processes, repeated runs, one JSON object of figures
    transport        Unix sockets, TCP or TLS, for all processes of a workload
    onlooker         a reader of the pages of all processes
    processes        memory, threads, open files and CPU time of a process
    limited_network  hosts with slow links, as network namespaces
    registry         the runs of `bin/bench` and the figures in its table
"""
