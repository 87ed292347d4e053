"""Placement of parameters: the pserver of each block and of each virtual shard.

Reading order: `slicing` cuts dense parameters into blocks, `dispatchers` chooses an endpoint for
each block, `buckets` groups blocks that travel together, `vshards` divides the id space of sparse
tables, `plan` puts the three together into the `PartitionPlan` every trainer computes alike,
`placement` shows it, `transpile` makes the program a trainer runs, `arguments` checks arguments,
`transpiler_config` reads a mode from Fluid's flags, `transpiler` gives every process its part.
Every function here is pure: no socket, thread, clock or environment.
"""
