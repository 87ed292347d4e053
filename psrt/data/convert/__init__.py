"""Writers of MultiSlot files: public data sets, other formats, synthetic data. In reading order:

sharded         Writing a data set: rows distributed over files, published all at once
any_format      Files of any format that jobs read, as MultiSlot files of their slots
criteo          The public Criteo table (Kaggle 2014, 1TB logs)
libsvm          libsvm text (also svmlight), digit by digit
idx             IDX files (MNIST and its relatives), and labelled images
splitter        Records made one at a time in Python: read by lines, split into train and test
imikolov        Sentences as word ids: Mikolov's Penn Treebank, or any text by lines
movielens       MovieLens 1M, `ratings.dat users.dat movies.dat` in one directory
avazu           The table of Avazu's click-through contest, `train.csv`
synthetic       Criteo-shaped rows of a planted logistic model with a known best AUC
synthetic_text  Sentences of a planted model with a known best perplexity
file_parts      One text file cut into runs of its lines, one per trainer
"""

from psrt.data.convert import (
    any_format,
    avazu,
    criteo,
    file_parts,
    idx,
    imikolov,
    libsvm,
    movielens,
    synthetic,
    synthetic_text,
)
from psrt.data.convert.sharded import PARTS, Destination, ShardedWriter, Split

__all__ = ["PARTS", "Destination", "ShardedWriter", "Split", "any_format", "avazu", "criteo"]
__all__ += ["file_parts", "idx", "imikolov", "libsvm", "movielens", "synthetic", "synthetic_text"]
