"""specs: frozen descriptions of tables, optimizers, schedules and modes.

admission       rules that decide the ids that may own a row, and scores of ids
lifecycle       growth and eviction of rows
modes           communication modes: six types, each with its own settings
schedules       learning-rate schedules: the rate as a function of the step t = 0, 1, …
ctr_optimizers  optimizers of click models
optimizers      optimizers: formulas and their numbers
regularizers    terms added to a gradient to keep weights small
policy_rules    legal options of a sparse table
table_options   options of a sparse table in addition to its shape and optimizer
table_specs     tables: the contract between trainers and pservers
warm_starts     a warm start: the source of first values, and rules that map names
canonical       specs as plain data and as JSON
plan_texts      differences of two partition plans, for messages
formula_rules   legal numbers of optimizers, initializers and regularizers
rates           the learning rate of a step, as plain functions of a schedule
"""

from psrt.core.specs.admission import Admission, CountFilter, Probability, Score, ShowClick
from psrt.core.specs.canonical import differences, from_json, from_plain, to_json, to_plain
from psrt.core.specs.ctr_optimizers import CtrAdagrad, CtrAdam, CtrSgd, CtrSharedAdam, CtrStdAdagrad
from psrt.core.specs.formula_rules import (
    check_formula,
    formula_problems,
    is_float32,
    number_problems,
    optimizer_problems,
)
from psrt.core.specs.lifecycle import Growth, Lifecycle
from psrt.core.specs.modes import (
    MODES,
    Async,
    Collective,
    CommunicationMode,
    Geo,
    HalfAsync,
    Ssp,
    Sync,
)
from psrt.core.specs.optimizers import (
    LAYER_WISE,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Add,
    DecayedAdagrad,
    Ftrl,
    Lamb,
    LarsMomentum,
    Momentum,
    Optimizer,
    RmsProp,
    RowWiseAdagrad,
    Sgd,
    moves_all_rows,
    scales_by_shows,
    without_show_scale,
)
from psrt.core.specs.plan_texts import plan_differences, text_of
from psrt.core.specs.policy_rules import (
    admission_problems,
    growth_problems,
    lifecycle_problems,
    option_problems,
    score_problems,
)
from psrt.core.specs.rates import check_schedule, rate_at, scaled, schedule_of
from psrt.core.specs.regularizers import L1Decay, L2Decay, Regularizer
from psrt.core.specs.schedules import (
    ComputedRate,
    ConstantRate,
    CosineDecay,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRate,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
    Warmup,
)
from psrt.core.specs.table_options import DEFAULT_OPTIONS, STORAGES, TableOptions
from psrt.core.specs.table_specs import (
    VIRTUAL_SHARDS,
    Constant,
    DenseTableSpec,
    Initializer,
    Normal,
    SparseTableSpec,
    TableSpec,
    TruncatedNormal,
    Uniform,
)
from psrt.core.specs.warm_starts import STATES as WARM_STATES
from psrt.core.specs.warm_starts import WarmRule, WarmStart

__all__ = ["DEFAULT_OPTIONS", "LAYER_WISE", "MODES", "STORAGES", "VIRTUAL_SHARDS", "Adadelta"]
__all__ += ["Adagrad", "Adam", "AdamW", "Adamax", "Add", "Admission", "Async", "Collective"]
__all__ += ["CommunicationMode", "ComputedRate"]
__all__ += ["Constant", "ConstantRate", "CosineDecay", "CountFilter", "CtrAdagrad", "CtrAdam"]
__all__ += ["CtrSgd", "CtrSharedAdam", "CtrStdAdagrad", "DecayedAdagrad", "DenseTableSpec"]
__all__ += ["ExponentialDecay", "Ftrl", "Geo", "Growth", "HalfAsync", "Initializer"]
__all__ += ["InverseTimeDecay", "L1Decay", "L2Decay", "Lamb", "LarsMomentum", "LearningRate"]
__all__ += ["Lifecycle", "Momentum", "NaturalExpDecay", "NoamDecay", "Normal", "Optimizer"]
__all__ += ["PiecewiseDecay", "PolynomialDecay", "Probability", "Regularizer", "RmsProp", "Score"]
__all__ += ["Sgd", "ShowClick", "SparseTableSpec", "Ssp", "Sync", "TableOptions", "TableSpec"]
__all__ += ["TruncatedNormal", "Uniform", "Warmup", "admission_problems", "check_formula"]
__all__ += ["check_schedule", "differences", "formula_problems", "from_json", "from_plain"]
__all__ += ["growth_problems", "is_float32", "lifecycle_problems", "moves_all_rows"]
__all__ += ["number_problems", "optimizer_problems", "option_problems", "plan_differences"]
__all__ += ["rate_at", "scaled"]
__all__ += ["scales_by_shows", "schedule_of", "score_problems", "text_of", "to_json"]
__all__ += ["to_plain"]
__all__ += ["WARM_STATES", "RowWiseAdagrad", "WarmRule", "WarmStart", "without_show_scale"]
