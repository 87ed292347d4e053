"""First values of tables from a cut or a saved model, by name and by rule.

In reading order:

    matching    parameters of a job and of a source: which belong together, what fits
    report      text for people about a match, and the errors of a strict one
    raw_rows    saved rows in the layout of another table
    filling     a table filled from the parameter that it matches
    warm_start  the warm start of one pserver
"""

from psrt.pserver.warm.warm_start import WarmTables

__all__ = ["WarmTables"]
