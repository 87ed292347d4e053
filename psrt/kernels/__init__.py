"""Numeric kernels: bare loops over arrays, compiled by numba, called from any thread.

In reading order:

    cache        where machine code is kept, safe for many processes
    jit          the one compile policy: `@kernel`, `@device`, `warm_up`
    dense        element-wise loops over whole blocks
    steps        one update formula per optimizer, for blocks and rows alike
    optimizers   updates of dense blocks
    hashing      stable hashes: virtual shards, counters to random bits
    initialize   the value of an untouched parameter as a pure function of (seed, key, column)
    idmap        open-addressing map from int64 ids to slots
    growing      memory for rows that grows where it lies
    prefetch     naming memory that a loop will need soon
    decay        delay compensation and decay of gradients, right before an update
    optimizer_rows, adam_rows  updates of rows of a table
    rules        optimizer spec to layout of state and kernels
    slab         fused passes over a stripe of a sparse table: find, create, read
    agreement    what a trainer has changed since it agreed with others (Geo)
    rows         dedupe, gather, scatter, merge and partition of rows by id
    pooling      rows of one example to one vector: sum, average, max, first, …
    sequence     where the elements of ragged vars go, softmax over each example
    interactions products between the features of one example
    elementary   eˣ, ln(1 + t), erf, sigmoid: what vectorised loops call
    images       convolution as a matrix product, pooling over windows
    random       masks drawn by counter
    nn           fused element-wise steps of the trainer, AUC
    activations  activations and their derivatives
    losses       softmax cross-entropy, logistic and ranking losses
    sampling     drawn classes, tree paths, products of an example with its rows
    metrics      counting for metrics
    digits       short numbers in text, eight characters at a time
    text         numbers in text, read and written
    multislot    MultiSlot lines to batch arrays and back
    records      examples in memory: batches in, batches of any records out
    criteo       rows of the public Criteo table to arrays
    prefixes     words in front of the slots of a line
    libsvm       libsvm text to MultiSlot text
    svmlight     libsvm text to batch arrays
    destinations which trainer a record goes to
    delimited    lines of delimited text to cells and values
    cells        values in ranges of text to numbers and hashes
    oracle       plain-numpy twins, for tests

Outputs and scratch are passed in, inputs are never written, in-place kernels end in `_`. No kernel
takes a lock or checks bounds: callers own both.
"""
