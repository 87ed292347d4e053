"""Public sample data sets, read without conversion.

In reading order:

    __main__  the command: `python -m benchmarks.shared_sets`
    sets      the files of each set, and a reader for them
"""
