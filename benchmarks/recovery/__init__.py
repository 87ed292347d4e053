"""Pauses of trainers when pservers are killed.

In reading order:

    phases    gaps between steps and the parts of a recovery, from logs and times
    trainer   one trainer, which records when its steps ended
    __main__  the command: `python -m benchmarks.recovery`
"""
