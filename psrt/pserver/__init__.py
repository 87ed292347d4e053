"""pserver: holds tables, applies optimizer kernels, closes rounds. It contains no programs.

In reading order:

    decisions    rounds, clocks, membership, dedupe: pure functions of (event, now) to instructions
    frozen       freezes of tables: pages handed out while pushes go on, and restores
    tables       dense blocks and sparse rows in memory, their updates and limits
    eviction     rows that are dropped: by age, value or memory, or on request
    checkpoints  cuts on disk: parts, manifests, tables restored from them
    saved        parameters of cuts and of saved models by name, in bounded memory
    warm         first values of tables from cuts and saved models, by name and rule
    loading      tables filled from a cut while calls go on
    serving      the rpc handler and the effect runner
    replicas     copies of parts that other pservers serve, and failovers
    process      the pserver process, and pservers inside a user's process
"""
