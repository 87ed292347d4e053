"""pserver: holds tables, applies optimizer kernels, closes rounds. It knows no programs.

In reading order, doing below and deciding above:

    pulled         dense values that trainers may still compute on
    spare_threads  idle threads that help with a large request
    block_update   what gradients do to the values and the state of a block
    block_values   the values of a block, copied only if a reader still holds them
    dense_table    one block of one dense parameter
    fair_lock      a lock that nobody can keep from others by taking it again and again
    admission      which ids may own a row
    room_ahead     memory made before rows reach it
    stripe         rows of some virtual shards, and their lock
    change_log     who pushed which rows, for trainers under Geo
    hot_ids        which ids are pulled most
    routed         a batch of ids, grouped by the stripes of its table
    sparse_table   one pserver's share of a sparse table, over its stripes
    growing_table  rows that start short: two sparse tables that look like one
    id_lists       lists of ids that trainers have pulled and will push gradients of
    spec_rules     which table specs are accepted
    tables         the registry
    lifecycle      which rows are at their end                         (pure)
    sweeping       going through all rows of a table in small slices
    meters         counters by the names of the twelve stops
    upkeep         tables within their limits beside training; shrinking
    parts          requests taken apart and checked, before anything is admitted
    calls          calls that wait, and the instructions that end the wait
    membership     which trainers were met, and whom to wait for      ┐
    dedupe         which pushes were admitted already                  │
    pushes         when a push is applied and answered                 │ pure: (event, now)
    rounds         when a synchronous round closes, and with whom      │ → instructions
    sections       rounds of tables that are updated beside each other │
    notes          what trainers tell each other when they meet        │
    clocks         how far trainers are, and who waits for whom        │
    mode_rules     which settings of a mode are accepted               │
    machine        these together, and the job's identity              ┘
    presence       which processes still hold a connection
    updates        admitted gradients into tables, tables into replies
    shell          does what the machine decides: lock, deadlines, waiting calls
    service        the rpc handler: one small function per method
    daemon         the process: warm-up, doors, ready file, signals
    in_process     the same inside a user's own process
"""
