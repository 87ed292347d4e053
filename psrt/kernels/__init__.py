"""Numeric kernels: bare loops over arrays, compiled by numba, called from any thread.

In reading order:

    cache        where machine code is kept, safe for many processes
    jit          the one compile policy: `@kernel`, `@device`, `warm_up`
    half_bits    float16 for a processor that cannot convert it
    halves       numbers of 16 and 8 bits, as they are stored and sent
    narrow       float32 arrays as the tensors that travel in their place, and back
    dense        element-wise loops over whole blocks
    steps        one update formula per optimizer, for blocks and rows alike
    optimizers   updates of dense blocks
    hashing      stable hashes: virtual shards, counters to random bits
    initialize   the value of an untouched parameter as a pure function of (seed, key, column)
    growing      memory for rows that grows where it lies
    copying      rows copied and added, eight numbers at a time
    prefetch     naming memory that a loop will need soon
    decay        delay compensation and decay of gradients, right before an update
    optimizer_rows, adam_rows  updates of rows of a table
    ctr_steps, ctr_optimizers  the optimizers of click models: formulas, blocks and rows
    rule         what an optimizer is to a table: its state and its kernels
    adam_rules, ctr_rules, rules  optimizer spec to rule
    waiting      which ids may have a row: counted while they wait, or drawn
    row_lives    what rows remember of their life, and which are at its end
    row_layout   what lies where in a row of a sparse table
    leaves       extendible hashing: cells, leaves and a directory from ids to slots
    id_index     the same as an object: grows and shrinks leaf by leaf
    routing      which stripe of a table has which ids of a batch
    slab         passes over rows by id: find, create, read
    row_store    rows by id in memory: index and slab, kept in step
    half_rows    rows with weights of 16 bits
    row_update   one batch of gradients on its way into rows
    agreement    what a trainer has changed since it agreed with others (Geo)
    rows         dedupe, gather, scatter, merge and partition of rows by id
    pooling      rows of one example to one vector: sum, average, max, first, …
    sequence     where the elements of ragged vars go, softmax over each example
    interactions products between the features of one example
    elementary   eˣ, ln(1 + t), erf, sigmoid: what vectorised loops call
    images       convolution as a matrix product, pooling over windows
    random       masks drawn by counter
    nn           fused element-wise steps of the trainer, AUC
    blas         the products of numpy's BLAS, called by kernels
    addresses    addresses of arrays, and arrays at addresses
    play         the kernel that plays a tape
    tape         small computations noted down, then done in one call
    denormals    numbers too small to be worth their time, taken for zero
    spin         waiting a moment for a change in memory, or for a message
    activations  activations and their derivatives
    losses       softmax cross-entropy, logistic and ranking losses
    sampling     drawn classes, tree paths, products of an example with its rows
    metrics      counting for metrics
    unaligned    eight bytes at any place of an array, at once
    digits       short numbers in text, eight characters at a time
    text         numbers in text, read and written
    multislot    the slots of MultiSlot lines
    multislot_rows  MultiSlot lines to the arrays of batches
    multislot_records  MultiSlot lines to records
    lines        rows of arrays to MultiSlot lines
    records      examples in memory: batches in, batches of any records out
    criteo       rows of the public Criteo table to arrays
    prefixes     words in front of the slots of a line
    libsvm       libsvm text to MultiSlot text
    svmlight     libsvm text to batch arrays
    destinations which trainer a record goes to
    delimited    lines of delimited text to cells and values
    pairs        lines of `name:value` to values
    cells        values in ranges of text to numbers and hashes
    oracle       plain-numpy twins, for tests

Outputs and scratch are passed in, inputs are never written, in-place kernels end in `_`. No kernel
takes a lock or checks bounds: callers own both.
"""
