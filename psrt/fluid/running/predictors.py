"""Predictors by the names of Fluid's inference library: models that `save_inference_model` wrote.

config = fluid.core.NativeConfig()
config.model_dir = "model"
predictor = fluid.core.create_paddle_predictor(config)
(output,) = predictor.run([fluid.core.PaddleTensor(array)])
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError, DataError
from psrt.core.types import Array
from psrt.fluid.names import missing, no_cuda
from psrt.fluid.running.lod_tensor import LoDTensor
from psrt.fluid.running.runs import sequential
from psrt.fluid.running.saved_models import load_inference_model
from psrt.fluid.running.scope import FluidScope, scope_guard
from psrt.fluid.running.values import feed_of


class PaddleDType(IntEnum):
    """Types of elements, by the numbers of Fluid's inference library."""

    FLOAT32 = 0
    INT64 = 1
    INT32 = 2


_DTYPES = {PaddleDType.FLOAT32: "float32", PaddleDType.INT64: "int64", PaddleDType.INT32: "int32"}


class PaddleBuf:
    """The elements of a tensor, in a row; an int is their number in bytes, all zero."""

    def __init__(self, data: Any = 0) -> None:
        self.reset(np.zeros(data, np.uint8) if isinstance(data, int) else data)

    def reset(self, data: Any) -> None:
        """Copy the elements of an array or a list, whose floats become float32."""
        given = np.array(data)
        self._array = given if isinstance(data, np.ndarray) else _narrow(given)

    def empty(self) -> bool:
        """Return whether there are no elements."""
        return self._array.size == 0

    def length(self) -> int:
        """Return the size in bytes."""
        return self._array.nbytes

    def float_data(self) -> list[float]:
        """Return the elements, which are float32."""
        return self.tolist("float32")

    def int64_data(self) -> list[int]:
        """Return the elements, which are int64."""
        return self.tolist("int64")

    def int32_data(self) -> list[int]:
        """Return the elements, which are int32."""
        return self.tolist("int32")

    def tolist(self, dtype: str = "float32") -> list[Any]:
        """Return the elements as a list; raises `DataError` if they are of another dtype."""
        listed: list[Any] = self.array(dtype).tolist()
        return listed

    def array(self, dtype: str) -> Array:
        """Return the elements as (n,); raises `DataError` if they are of another dtype."""
        if self._array.dtype != dtype:
            raise DataError(f"The tensor holds {self._array.dtype}, and was read as {dtype}.")
        return self._array.reshape(-1)


class PaddleTensor:
    """An input or output of a predictor: `data`, a `PaddleBuf`, in `shape`; `lod` has offsets."""

    def __init__(
        self, data: Any = None, name: str = "", lod: Sequence[Sequence[int]] = (), copy: bool = True
    ) -> None:
        array = np.empty(0, np.float32) if data is None else _narrow(np.asarray(data))
        self.name, self.lod = name, [list(level) for level in lod]
        self.data, self.shape = PaddleBuf(array), list(array.shape)
        self.dtype = next(kind for kind, dtype in _DTYPES.items() if array.dtype == dtype)

    def as_ndarray(self) -> Array:
        """Return the elements in their shape."""
        return self.data.array(_DTYPES[PaddleDType(self.dtype)]).reshape(self.shape)


class AnalysisConfig:
    """Place of a model: a directory, or the files of its program and its parameters.

    Options of other engines are set without effect. Raises `ConfigError` for a GPU.
    """

    def __init__(self, model_dir: str = "", param_file: str = "") -> None:
        self._directory = self._program = self._parameters = ""
        self.set_model(model_dir, param_file)

    def set_model(self, model_dir: str, param_file: str = "") -> None:
        """Set the directory of the model, or the files of its program and its parameters."""
        self._directory = "" if param_file else model_dir
        self._program, self._parameters = (model_dir, param_file) if param_file else ("", "")

    def model_dir(self) -> str:
        """Return the directory of the model, "" if it is two files."""
        return self._directory

    def prog_file(self) -> str:
        """Return the file of the program, "" if the model is a directory."""
        return self._program

    def params_file(self) -> str:
        """Return the file of the parameters, "" if the model is a directory."""
        return self._parameters

    def enable_use_gpu(self, memory_pool_init_size_mb: int = 0, device_id: int = 0) -> None:
        """Raise `ConfigError`."""
        raise no_cuda(f"AnalysisConfig.enable_use_gpu({memory_pool_init_size_mb}, {device_id})")

    def use_gpu(self) -> bool:
        """Return False: psrt computes on CPUs."""
        return False

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith(("disable_", "enable_", "switch_", "set_")):
            return lambda *arguments, **options: None
        raise missing("fluid.core.AnalysisConfig", name, dir(type(self)))


class NativeConfig:
    """Place of a model: `model_dir`, or `prog_file` and `param_file`.

    Options of other engines are set without effect; `use_gpu` is refused by the predictor.
    """

    def __init__(self) -> None:
        self.model_dir = self.prog_file = self.param_file = ""
        self.use_gpu = False


class PaddlePredictor:
    """A loaded model, with parameters of its own."""

    def __init__(self, config: AnalysisConfig | NativeConfig) -> None:
        self._config, self._scope = config, FluidScope()
        with scope_guard(self._scope):
            self._program, self._feeds, fetched = load_inference_model(*_files(config))
        self._fetches = [variable.name for variable in fetched]
        self._values: dict[str, LoDTensor] = {}

    def run(self, inputs: Sequence[PaddleTensor]) -> list[PaddleTensor]:
        """Predict for tensors, in the order of the model's inputs; returns its outputs.

        Raises `DataError` for another number of them.
        """
        if len(inputs) != len(self._feeds):
            raise DataError(f"{len(inputs)} tensors were given for {', '.join(self._feeds)}.")
        given = zip(self._feeds, inputs, strict=True)
        made = self._run({name: _tensor_of(tensor) for name, tensor in given})
        return [PaddleTensor(np.array(made[name]), name, made[name].lod()) for name in made]

    def get_input_names(self) -> list[str]:
        """Return the names of the inputs."""
        return list(self._feeds)

    def get_output_names(self) -> list[str]:
        """Return the names of the outputs."""
        return list(self._fetches)

    def get_input_tensor(self, name: str) -> ZeroCopyTensor:
        """Return an input, to copy into."""
        return ZeroCopyTensor(self._values.setdefault(name, LoDTensor()))

    def get_output_tensor(self, name: str) -> ZeroCopyTensor:
        """Return an output, to copy from after `zero_copy_run`."""
        return ZeroCopyTensor(self._values.setdefault(name, LoDTensor()))

    def zero_copy_run(self) -> None:
        """Predict for the inputs that were copied."""
        for name, tensor in self._run({name: self._values[name] for name in self._feeds}).items():
            self.get_output_tensor(name).copy_from(tensor)

    def clone(self) -> PaddlePredictor:
        """Return a predictor of the same files."""
        return PaddlePredictor(self._config)

    def _run(self, given: dict[str, LoDTensor]) -> dict[str, LoDTensor]:
        batch = feed_of(given, self._program.graph)
        values = sequential(self._program, self._scope).run(batch, self._fetches)
        return {
            name: LoDTensor.of(value) for name, value in zip(self._fetches, values, strict=True)
        }


class ZeroCopyTensor:
    """An input or output of a predictor, by name."""

    def __init__(self, tensor: LoDTensor) -> None:
        self._tensor = tensor

    def copy_from_cpu(self, array: Any) -> None:
        """Copy an array into an input."""
        self._tensor.set(array)

    def copy_to_cpu(self) -> Array:
        """Return a copy of an output."""
        return np.array(self._tensor)

    def reshape(self, shape: Sequence[int]) -> None:
        """Without effect: an array that is copied brings its shape."""

    def lod(self) -> list[list[int]]:
        """Return the offsets of each level."""
        return self._tensor.lod()

    def set_lod(self, lod: Sequence[Sequence[int]]) -> None:
        """Set the offsets of each level, after the array."""
        self._tensor.set_lod(lod)

    def copy_from(self, tensor: LoDTensor) -> None:
        """Take the array and the lengths of another tensor."""
        self._tensor.set(tensor)
        self._tensor.set_lod(tensor.lod())


def create_paddle_predictor(config: AnalysisConfig | NativeConfig) -> PaddlePredictor:
    """Return the predictor of a model; errors are those of `load_inference_model`."""
    return PaddlePredictor(config)


def _files(config: AnalysisConfig | NativeConfig) -> tuple[str, None, str | None, str | None]:
    """The arguments of `load_inference_model`."""
    if isinstance(config, AnalysisConfig):
        named = config.model_dir(), config.prog_file(), config.params_file()
    else:
        named = config.model_dir, config.prog_file, config.param_file
        if config.use_gpu:
            raise no_cuda("NativeConfig.use_gpu")
    directory, program, parameters = named
    if not (directory or program):
        raise ConfigError("A predictor was asked for without a model.", hint="Set its model_dir.")
    folder = directory or os.path.dirname(program)
    beside = os.path.relpath(parameters, folder) if parameters else None
    return folder, None, os.path.basename(program) or None, beside


def _tensor_of(given: PaddleTensor) -> LoDTensor:
    tensor = LoDTensor(given.as_ndarray())
    tensor.set_lod(given.lod)
    return tensor


def _narrow(array: Array) -> Array:
    """The array in a dtype of the inference library: float64 becomes float32."""
    known = array.dtype.name in _DTYPES.values()
    return array if known else array.astype("float32" if array.dtype.kind == "f" else "int64")
