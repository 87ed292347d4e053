"""`paddle.dataset`: readers of public data sets, over files on this host.

common       the folder of the files, and the error for one that is missing
uci_housing  13 numbers of a district, and its price
mnist        images of digits
cifar        colour images of 10 and 100 classes
imikolov     n-grams of the Penn Treebank
imdb         reviews of films, good and bad
movielens    ratings of films
conll05      roles of words for verbs
wmt14        sentences in English and French
wmt16        sentences in English and German

psrt downloads nothing. Files have PaddlePaddle's names, in `DATA_HOME/<name>/`.
"""

from psrt.fluid.paddle.dataset import (
    cifar,
    common,
    conll05,
    imdb,
    imikolov,
    mnist,
    movielens,
    uci_housing,
    wmt14,
    wmt16,
)

__all__ = [
    "cifar",
    "common",
    "conll05",
    "imdb",
    "imikolov",
    "mnist",
    "movielens",
    "uci_housing",
    "wmt14",
]
__all__ += ["wmt16"]
