"""W1 with each kind of durability, in turn.

In reading order:

    __main__  the command: `python -m benchmarks.durability_cost`
"""
