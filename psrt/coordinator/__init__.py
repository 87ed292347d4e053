"""The coordinator of a job's cuts, inside its first pserver: pure decisions, and what they keep.

In reading order:

    retention     the cuts that are kept when a newer one is complete
    schedule      the times at which a cut is due
    part_chain    the cut that the next part of a pserver continues
    term          the one of several processes that coordinates the cuts of a directory
    instructions  answers to calls, and the end of a cut
    coordinator   proposals, parts and commits: events in, instructions out
"""

__all__: list[str] = []
