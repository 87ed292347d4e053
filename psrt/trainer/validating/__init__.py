"""Validation while training goes on: when it is due, what its values decide, and the test itself.

contest    the best value so far, and the end of a training that does not improve; pure
validated  the course of validations, as cuts and states have it
due        the steps after which a validation is due; pure
validator  tests on held-back files, and what follows from them
early_end  the end of the other trainers once trainer 0 has decided it
"""

from psrt.trainer.validating.contest import Contest, Standing, contest_of
from psrt.trainer.validating.due import DueSteps
from psrt.trainer.validating.early_end import EarlyEnd
from psrt.trainer.validating.validated import Validated
from psrt.trainer.validating.validator import Actions, Point, Validator

__all__ = ["Actions", "Contest", "DueSteps", "EarlyEnd", "Point", "Standing", "Validated"]
__all__ += ["Validator", "contest_of"]
