"""optimizers: files in reading order.

elementwise       Element-wise loops over flat float32 blocks; one rounding per operation, the
                  same bits however a block is sliced
formulas          The update formulas: one device function per optimizer, for dense blocks and
                  for rows alike
dense_updates     Updates of dense blocks: one kernel per optimizer around its formula in
                  `steps`
ctr_formulas      The update formulas of click models, device functions as in `steps`; see
                  `psrt.core.specs.ctr_optimizers` for the formulas
decay             What is done to a gradient between its arrival and the optimizer: delay
                  compensation, then decay
row_updates       Updates of rows: one kernel per optimizer around its formula in `steps`
adam_row_updates  Updates of rows by the optimizers whose bias correction counts a row's own
                  updates
ctr_updates       Updates of dense blocks and of rows by the optimizers of click models, around
                  `ctr_steps`
optimizer_rule    What an optimizer is to a table: the state a weight needs, and the kernels
                  that move it
adam_rules        The rules of Adam and its kin, which correct the bias of their first steps
ctr_rules         The rules of the optimizers of click models
registry          Optimizer spec → its rule (`psrt.kernels.optimizers.optimizer_rule`); the
                  rules of most optimizers stand here
"""

from __future__ import annotations

from psrt.kernels.optimizers import elementwise
from psrt.kernels.optimizers.decay import Decay, compensate, decay_of
from psrt.kernels.optimizers.elementwise import scale_
from psrt.kernels.optimizers.registry import OptimizerRule, RowTable, TouchedRows, rule_of
from psrt.kernels.optimizers.row_updates import HEADER_WORDS, UPDATES_WORD, VERSION_WORD, stamp_

__all__ = [
    "HEADER_WORDS",
    "UPDATES_WORD",
    "VERSION_WORD",
    "Decay",
    "OptimizerRule",
    "RowTable",
    "TouchedRows",
    "compensate",
    "decay_of",
    "elementwise",
    "rule_of",
    "scale_",
    "stamp_",
]
