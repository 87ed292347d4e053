"""Pauses of trainers when pservers are killed.

In reading order:

    phases            gaps between steps and the parts of a recovery, from logs and times
    trainer           one trainer, which records when its steps ended
    training_cluster  a cluster of such trainers, and its pservers
    __main__          the command: `python -m benchmarks.recovery`
"""
