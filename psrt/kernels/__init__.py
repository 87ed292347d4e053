"""Numeric kernels: bare loops over arrays, compiled by numba, called from any thread.

In reading order:

    cache       the directory of machine code, safe for many processes
    jit         the one compile policy: `@kernel`, `@device`, `warm_up`
    lowlevel    hashing, prefetch, addresses, BLAS, elementary functions, waiting in memory
    precision   numbers of 16 and 8 bits
    optimizers  update formulas, and kernels that apply them to blocks and rows
    tables      rows by id: index, slab, admission, eviction, initial values
    ops         kernels of single ops, and command lists that run without the interpreter
    text        parsers of MultiSlot, libsvm, Criteo and delimited lines

Outputs and scratch are passed in, inputs are never written, in-place kernels end in `_`. No kernel
takes a lock or checks bounds: callers own both.
"""
