"""Validation while training goes on: when it is due, what its values decide, and the test itself.

contest    the best value so far, and the end of a training that does not improve; pure
due        the steps after which a validation is due; pure
validator  tests on held-back files, and what follows from them
early_end  the end of the other trainers once trainer 0 has decided it
"""

from psrt.trainer.validating.contest import Contest, Standing, contest_of
from psrt.trainer.validating.due import DueSteps
from psrt.trainer.validating.early_end import EarlyEnd
from psrt.trainer.validating.validator import Actions, Validator

__all__ = ["Actions", "Contest", "DueSteps", "EarlyEnd", "Standing", "Validator", "contest_of"]
