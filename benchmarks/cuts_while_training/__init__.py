"""Steps of trainers while a cut is written, and before it.

In reading order:

    spans     steps of the times of cuts, and of the quiet times before them
    __main__  the command: `python -m benchmarks.cuts_while_training`
"""
