"""Running the processes of a job.

Reading order: plan (which processes) → supervise (what to do when one ends) → processes (starting
and signalling them) → report (what they did) → local (a cluster on this host).
"""
