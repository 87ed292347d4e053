"""Placement of parameters: the pserver of each block and of each virtual shard.

In reading order:

    slicing            dense parameters to blocks
    dispatchers        an endpoint for each block
    buckets            blocks of a pserver that travel together
    vshards            division of the id space of sparse tables
    parameter_specs    parameters to specs of tables
    plan               the `PartitionPlan` that every trainer builds
    placement          a plan as text and as data
    transpile          the program that a trainer runs
    arguments          checks of arguments
    transpiler_config  Fluid's flags to a mode
    transpiler         the part of each process

Every function here is pure: no socket, thread, clock or environment.
"""
