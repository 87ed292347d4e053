"""Full and incremental cuts of a table of 5 million rows, restored and merged.

In reading order:

    __main__  the command: `python -m benchmarks.cut_chains`
"""
