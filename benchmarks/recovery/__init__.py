"""recovery: seconds that trainers lose when pservers are killed.

__main__   the command: a cluster, kills, figures
trainer    one trainer of it, which records when its steps ended
phases     the parts of a recovery, from logs and times
"""
