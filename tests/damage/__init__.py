"""Damage of every kind of durable file: it is found and named, and nothing of it is loaded.

files     directories of simulated jobs, as a copy in memory that a case damages
damages   one case for each byte and each kind of damage
reading   all that psrt reads of a directory: cuts, states, local cuts, terms
"""
