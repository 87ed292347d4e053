"""Runs of programs over scopes, and saved values. In reading order:

scope         scopes by Fluid's names: arrays by var name, and the runs over them
lod_tensor    arrays with the lengths of their sequences
values        feeds and fetched values in the forms of Fluid
fetched       fetches beyond vars of one level, and values of replicas
whole_tables  distributed tables of a program without pservers
blas_threads  the number of BLAS threads of a program
runs          runs of a program over a scope, by psrt's executors
ending        failure of a script, as far as an exit handler can detect it
connection    a trainer's way to its pservers, one for each transpiled program
steps         steps of one call, under the profiler of this process if one records
reports       reports of the values that `train_from_dataset` fetches
watching      `debug=True` of `train_from_dataset`
paddle_files  PaddlePaddle's own files of vars and models
saved_tables  parameters of programs with distributed tables, as saved models
beginnings    files of vars as the beginning of a pserver
saved_vars    values of vars as files
saved_states  values of a program as one file
whole_programs  programs with all their ops, to train on
saved_models  models to predict with, in the form of `psrt.save_inference_model`
predictors    predictors by the names of Fluid's inference library
"""

from psrt.fluid.running import steps
from psrt.fluid.running.blas_threads import bound_blas
from psrt.fluid.running.connection import connected, disconnect
from psrt.fluid.running.fetched import FetchedRates, FetchedTensors, rates_alone
from psrt.fluid.running.lod_tensor import (
    LoDTensor,
    LoDTensorArray,
    create_lod_tensor,
    create_random_int_lodtensor,
    from_dlpack,
)
from psrt.fluid.running.predictors import (
    AnalysisConfig,
    NativeConfig,
    PaddleBuf,
    PaddleDType,
    PaddlePredictor,
    PaddleTensor,
    create_paddle_predictor,
)
from psrt.fluid.running.reports import FetchHandler, PeriodicReport, TimedReport
from psrt.fluid.running.runs import LocalRun, ReplicatedRun, Run, initialise, sequential
from psrt.fluid.running.saved_models import load_inference_model, save_inference_model
from psrt.fluid.running.saved_states import load, load_program_state, save, set_program_state
from psrt.fluid.running.saved_vars import (
    get_parameter_value,
    get_parameter_value_by_name,
    get_program_parameter,
    get_program_persistable_vars,
    is_parameter,
    is_persistable,
    load_params,
    load_persistables,
    load_vars,
    save_params,
    save_persistables,
    save_vars,
)
from psrt.fluid.running.scope import (
    FluidScope,
    Scope,
    ScopeVar,
    chosen,
    global_scope,
    keep_fed,
    scope_guard,
)
from psrt.fluid.running.steps import run_async, run_steps
from psrt.fluid.running.values import (
    Batch,
    Feed,
    Fetch,
    FluidArray,
    feed_of,
    names_of,
    returned,
    shared_out,
    tensors_of,
)
from psrt.fluid.running.watching import run_watched

Tensor = LoDTensor  # its name in PaddlePaddle before sequences

__all__ = ["load", "load_program_state", "save", "set_program_state"]
__all__ += ["AnalysisConfig", "NativeConfig", "PaddleBuf", "PaddleDType", "PaddlePredictor"]
__all__ += ["PaddleTensor", "create_paddle_predictor"]
__all__ += ["FetchHandler", "PeriodicReport", "TimedReport", "run_async", "run_steps"]
__all__ += ["steps"]
__all__ += ["Batch", "Feed", "Fetch", "FluidArray", "FluidScope", "LoDTensor", "LoDTensorArray"]
__all__ += ["LocalRun", "bound_blas", "from_dlpack", "shared_out"]
__all__ += ["ReplicatedRun", "Run", "Scope", "Tensor", "create_random_int_lodtensor", "tensors_of"]
__all__ += ["chosen", "connected", "create_lod_tensor", "disconnect", "feed_of", "global_scope"]
__all__ += ["initialise", "is_parameter", "is_persistable", "load_inference_model", "load_params"]
__all__ += ["load_persistables", "load_vars", "names_of", "returned", "run_watched"]
__all__ += ["save_inference_model", "save_params", "save_persistables", "save_vars", "scope_guard"]
__all__ += ["FetchedRates", "FetchedTensors", "ScopeVar", "keep_fed", "rates_alone"]
__all__ += ["sequential"]
__all__ += ["get_parameter_value", "get_parameter_value_by_name", "get_program_persistable_vars"]
__all__ += ["get_program_parameter"]
