"""core: types and services every room shares. It imports no other room of psrt.

Reading order:

    types       array aliases
    errors      the error catalogue
    tensors     sparse gradients and variable-length slots
    precision   precision of gradients and parameters on the wire
    hints       hints of errors about unknown names
    extras      optional packages, imported on first use
    urls        URLs of files, through fsspec
    attributes  dataclasses that reject undeclared attributes
    specs       frozen descriptions of tables, optimizers and modes
    clock       time as an argument
    counters    counters and timers of a process
    tracing     spans of traces: the stops on a gradient's path
    log         log set-up
    process     facts of this process, and stacks of processes
    threads     threads whose crashes are reported
    service_manager  notices to the service manager that started this process
    failpoints  points at which tests kill or stop a process
    allocator   freed memory kept for reuse
    columns     text tables
    randomness  random numbers of psrt itself
    quantities  sizes and rates as people write them
    whole_file  files that are complete or absent
"""
