"""Predictions of `psrt plan --size`, compared with real processes.

In reading order:

    __main__  the command: `python -m benchmarks.size_model`
    memory    resident memory of rows
    traffic   bytes and CPU time of training steps
    costs     CPU time of a call, a part, a byte and a row
"""
