"""`psrt inspect` and `psrt export`: what a model holds, and its files for other programs.

In reading order:

    sources     parameters and rows of a saved model, a cut, or running pservers
    facts       statistics of parameters and rows, in one pass
    drawing     a histogram of the norms of rows
    report      the facts as lines of text
    inspecting  `psrt inspect`
    embeddings  the rows of a table as Parquet, NumPy and word2vec text
    exporting   `psrt export`
"""

from psrt.cli.models.exporting import export
from psrt.cli.models.inspecting import inspect

__all__ = ["export", "inspect"]
