"""pserver: holds tables, applies optimizer kernels, closes rounds. It contains no programs.

In reading order:

    decisions    rounds, clocks, membership, dedupe: pure functions of (event, now) to instructions
    frozen       freezes of tables: pages handed out while pushes go on, and restores
    tables       dense blocks and sparse rows in memory, their updates, sweeps and limits
    checkpoints  cuts on disk: parts, manifests, tables restored from them
    serving      the rpc handler, the effect runner and the daemon
"""
