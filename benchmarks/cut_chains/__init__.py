"""Full and incremental cuts of a table of 5 million rows, restored and merged.

In reading order:

    one_pserver  tables of one pserver, and its cuts
    loads        seconds to restore and to load cuts, and to read their files
    __main__     the command: `python -m benchmarks.cut_chains`
"""
