"""`paddle.dataset`: readers of public data sets, over files on this host.

common       the folder of the files, and the error for one that is missing
uci_housing  13 numbers of a district, and its price
mnist        images of digits
imikolov     n-grams of the Penn Treebank

psrt downloads nothing. Files have PaddlePaddle's names, in `DATA_HOME/<name>/`.
"""

from psrt.fluid.paddle.dataset import common, imikolov, mnist, uci_housing

__all__ = ["common", "imikolov", "mnist", "uci_housing"]
