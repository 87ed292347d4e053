"""Where parameters live: which block and which virtual shard stands on which pserver.

Reading order: `slicing` cuts dense parameters into blocks, `dispatchers` chooses an endpoint for
each block, `sections` says which travel together, `vshards` shares out the id space of sparse
tables, `plan` puts the three together into the `PartitionPlan` every trainer computes alike,
`placement` shows it, `transpile` makes the program a trainer runs, `arguments` checks what users
say, `transpiler_config` reads a mode from Fluid's flags, `transpiler` gives every process its
part. On paper: `traffic` (bytes of a step, by mode), `footprint` (bytes of tables), `costs` (CPU
time of calls), `loads` of pservers, `sizing`, how many of them a job takes, `concerns`, what is
wrong with that.
Everything here is a pure function of its arguments: no socket, thread, clock or environment.
"""
