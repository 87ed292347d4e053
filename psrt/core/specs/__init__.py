"""specs: files in reading order.

admission       Which ids may own a row of a sparse table, and what an id's score is: plain
                frozen data
lifecycle       How rows of a sparse table grow and end: plain frozen data
modes           Communication modes as plain frozen data: five types, each with the settings
                that mean something in it
schedules       Learning-rate schedules as plain frozen data: the rate as a function of the
                step t = 0, 1, …
ctr_optimizers  The optimizers of click models, as PaddlePaddle's sparse accessors have them:
                frozen data
optimizers      Optimizers as plain frozen data: which formula moves weights, and its numbers
regularizers    Regularizers as plain frozen data: what is added to a gradient to keep weights
                small
policy_rules    Which options of a sparse table make sense: admission, score, lifecycle, growth
table_options   What a user may ask of a sparse table beyond its shape and optimizer: plain
                frozen data
table_specs     What a pserver must know about tables, as plain frozen data: the contract
                between rooms
formula_rules   Which numbers of optimizers, initializers and regularizers their formulas can
                take
rates           Learning-rate schedules: the rate of a step, as plain functions of a spec
"""

from __future__ import annotations

from psrt.core.specs.admission import Admission, CountFilter, Probability, Score, ShowClick
from psrt.core.specs.ctr_optimizers import CtrAdagrad, CtrAdam, CtrSgd, CtrSharedAdam, CtrStdAdagrad
from psrt.core.specs.formula_rules import (
    check_formula,
    formula_problems,
    is_float32,
    number_problems,
    optimizer_problems,
)
from psrt.core.specs.lifecycle import Growth, Lifecycle
from psrt.core.specs.modes import MODES, Async, CommunicationMode, Geo, HalfAsync, Ssp, Sync
from psrt.core.specs.optimizers import (
    LAYER_WISE,
    SHARED_STATE,
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
    Sgd,
    moves_all_rows,
    scales_by_shows,
    without_show_scale,
)
from psrt.core.specs.policy_rules import (
    admission_problems,
    growth_problems,
    lifecycle_problems,
    option_problems,
    policy_problems,
    score_problems,
)
from psrt.core.specs.rates import check_schedule, rate_at, scaled, schedule_of
from psrt.core.specs.regularizers import L1Decay, L2Decay, Regularizer
from psrt.core.specs.schedules import (
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
    differences,
    from_json,
    from_plain,
    to_json,
    to_plain,
)

__all__ = [
    "DEFAULT_OPTIONS",
    "LAYER_WISE",
    "MODES",
    "SHARED_STATE",
    "STORAGES",
    "VIRTUAL_SHARDS",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Add",
    "Admission",
    "Async",
    "CommunicationMode",
    "Constant",
    "ConstantRate",
    "CosineDecay",
    "CountFilter",
    "CtrAdagrad",
    "CtrAdam",
    "CtrSgd",
    "CtrSharedAdam",
    "CtrStdAdagrad",
    "DecayedAdagrad",
    "DenseTableSpec",
    "ExponentialDecay",
    "Ftrl",
    "Geo",
    "Growth",
    "HalfAsync",
    "Initializer",
    "InverseTimeDecay",
    "L1Decay",
    "L2Decay",
    "Lamb",
    "LarsMomentum",
    "LearningRate",
    "Lifecycle",
    "Momentum",
    "NaturalExpDecay",
    "NoamDecay",
    "Normal",
    "Optimizer",
    "PiecewiseDecay",
    "PolynomialDecay",
    "Probability",
    "Regularizer",
    "RmsProp",
    "Score",
    "Sgd",
    "ShowClick",
    "SparseTableSpec",
    "Ssp",
    "Sync",
    "TableOptions",
    "TableSpec",
    "TruncatedNormal",
    "Uniform",
    "Warmup",
    "admission_problems",
    "check_formula",
    "check_schedule",
    "differences",
    "formula_problems",
    "from_json",
    "from_plain",
    "growth_problems",
    "is_float32",
    "lifecycle_problems",
    "moves_all_rows",
    "number_problems",
    "optimizer_problems",
    "option_problems",
    "policy_problems",
    "rate_at",
    "scaled",
    "scales_by_shows",
    "schedule_of",
    "score_problems",
    "to_json",
    "to_plain",
    "without_show_scale",
]
