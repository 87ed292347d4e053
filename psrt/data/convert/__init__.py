"""convert: files in reading order.

sharded         Writing a data set: rows dealt in turn over MultiSlot files, published all at
                once
any_format      Files of any format that jobs read, as MultiSlot files of the same slots
criteo          The public Criteo table (Kaggle 2014, 1TB logs) as MultiSlot files
libsvm          libsvm text (also svmlight) as MultiSlot files
idx             IDX files (MNIST and its relatives), and labelled images as MultiSlot files
splitter        Records that Python makes one at a time: read by lines, dealt to training and
                test files
imikolov        Sentences as word ids: Mikolov's Penn Treebank, or any text with a sentence on
                each line
movielens       MovieLens 1M, `ratings.dat users.dat movies.dat` in one directory, as MultiSlot
                files
avazu           The table of Avazu's click-through contest, `train.csv` with its header, as
                MultiSlot files
synthetic       Criteo-shaped rows of a planted logistic model, so that the best possible AUC
                is known
synthetic_text  Sentences of a planted model, whose perplexity is the best that a language
                model can reach
splitting       One text file cut into several, each a run of its lines, for as many trainers
"""

from __future__ import annotations

from psrt.data.convert import (
    any_format,
    avazu,
    criteo,
    idx,
    imikolov,
    libsvm,
    movielens,
    splitting,
    synthetic,
    synthetic_text,
)
from psrt.data.convert.sharded import PARTS, Destination, ShardedWriter, Split

__all__ = [
    "PARTS",
    "Destination",
    "ShardedWriter",
    "Split",
    "any_format",
    "avazu",
    "criteo",
    "idx",
    "imikolov",
    "libsvm",
    "movielens",
    "splitting",
    "synthetic",
    "synthetic_text",
]
