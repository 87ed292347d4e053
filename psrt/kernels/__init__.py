"""Numeric kernels: bare loops over arrays, compiled by numba, called from any thread.

In reading order:

    cache        where machine code is kept, safe for many processes
    jit          the one compile policy: `@kernel`, `@device`, `warm_up`
    dense        element-wise loops over whole blocks
    optimizers   one update formula per optimizer, for blocks and for slab rows
    hashing      stable hashes: virtual shards, counters to random bits
    initialize   the value of an untouched parameter as a pure function of (seed, key, column)
    idmap        open-addressing map from int64 ids to slots
    prefetch     naming memory that a loop will need soon
    slab         fused passes over a stripe of a sparse table: find, create, read, update
    rows         dedupe, gather, scatter, merge and partition of rows by id
    pooling      rows of one example to one vector: sum, average, max
    nn           fused element-wise steps of the trainer, AUC
    text         numbers in text, read and written
    multislot    MultiSlot lines to batch arrays and back
    criteo       rows of the public Criteo table to arrays
    oracle       plain-numpy twins, for tests

Outputs and scratch are passed in, inputs are never written, in-place kernels end in `_`. No kernel
takes a lock or checks bounds: callers own both.
"""
