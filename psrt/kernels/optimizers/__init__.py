"""Update formulas, and kernels that apply them to blocks and rows. In reading order:

elementwise      element-wise loops over flat float32 blocks, and sums of squares
formulas         update formulas: one device function per optimizer
ctr_formulas     update formulas of click models
row_headers      the header of a row: version and count of updates
update_kernels   kernels for blocks and rows, rendered from the formulas
bias_correction  bias corrections of Adam and its variants
decay            delay compensation and weight decay of a gradient before its update
optimizer_rule   the rule of an optimizer: its state and kernels
registry         the rule of each optimizer spec
"""

from psrt.kernels.optimizers import elementwise
from psrt.kernels.optimizers.decay import Decay, compensate, decay_of, per_show
from psrt.kernels.optimizers.elementwise import scale_
from psrt.kernels.optimizers.optimizer_rule import OptimizerRule, RowTable, TouchedRows
from psrt.kernels.optimizers.registry import rule_of
from psrt.kernels.optimizers.row_headers import HEADER_WORDS, UPDATES_WORD, VERSION_WORD, stamp_

__all__ = ["HEADER_WORDS", "UPDATES_WORD", "VERSION_WORD", "Decay", "OptimizerRule", "RowTable"]
__all__ += ["TouchedRows", "compensate", "decay_of", "elementwise", "per_show", "rule_of", "scale_"]
__all__ += ["stamp_"]
