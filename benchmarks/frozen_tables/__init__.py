"""Freezes of a table of 5 million rows, alone and while two threads push to it.

In reading order:

    __main__  the command: `python -m benchmarks.frozen_tables`
"""
