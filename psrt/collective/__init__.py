"""collective: the processes of a job that reduce gradients among themselves, without pservers.

torch.distributed moves the bytes: gloo between CPUs, NCCL between GPUs. Reading order:

    seat      the place of one process in a group
    presence  processes of a group that are there, by a store that all of them reach
    group     calls in which all processes take part
    meeting   from a seat to a group
    buckets   gradients that travel together
    staging   pinned memory and a stream, where gradients travel between GPUs
    reducer   means of dense gradients, reduced while backward goes on
    rows      sparse gradients of all processes
"""
