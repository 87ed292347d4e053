"""`DatasetFactory`: MultiSlot files as the batches of `Executor.train_from_dataset`.

    dataset = fluid.DatasetFactory().create_dataset()      a QueueDataset
    dataset.set_use_var([label, ids])                      the slots of a line, in their order
    dataset.set_batch_size(32); dataset.set_thread(2); dataset.set_filelist(files)

The datasets are those of `psrt.data.datasets`; these also take variables of Fluid, and settings by
the names of PaddlePaddle 2 (`init`). Settings of Fluid's queues and sleeps have no effect.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, TypeAlias

from psrt.core.errors import ConfigError
from psrt.core.hints import did_you_mean
from psrt.data.datasets import CONTENT, INS_ID, datasets
from psrt.data.reading import DatasetSettings
from psrt.data.slots import Batch, DataVar, Slot
from psrt.data.sources import BEGINNING, Place
from psrt.fluid.names import Variable

Field: TypeAlias = Variable | DataVar | Slot


class _Settings(DatasetSettings):
    """Settings in the forms of Fluid."""

    fluid_name: str
    """The name of the class in PaddlePaddle, for messages."""

    def set_use_var(self, var_list: Sequence[Field]) -> None:
        """Declare the vars of a line's slots, in their order."""
        super().set_use_var([v.var if isinstance(v, Variable) else v for v in var_list])

    def set_hdfs_config(self, fs_name: str, fs_ugi: str) -> None:  # type: ignore[override]
        """Keep name and user of a file system; without effect: files are named by URL (fsspec)."""
        self._file_system = (fs_name, fs_ugi)

    def set_download_cmd(self, download_cmd: str) -> None:  # type: ignore[override]
        """Keep a command; without effect: files are read where they are, or by the pipe command."""
        self._download_cmd = download_cmd

    @property
    def dataset(self) -> CoreDataset:
        """The dataset by the methods of Fluid's C++ core."""
        return CoreDataset(self.fluid_name, self)

    def init(self, **settings: Any) -> None:
        """Apply settings of PaddlePaddle 2: batch_size, thread_num, use_var and others."""
        self.update_settings(**settings)

    def update_settings(self, **settings: Any) -> None:
        """Apply some settings of `init`; raises `ConfigError` for one the dataset does not have."""
        setters = {name: setter for name, setter in _SETTERS.items() if hasattr(self, setter)}
        for name, value in settings.items():
            if (name, value) in _WITHOUT_EFFECT:
                continue
            if name not in setters:
                raise ConfigError(
                    f"a {self.fluid_name} has no setting {name!r}.",
                    hint=did_you_mean(name, setters),
                )
            getattr(self, setters[name])(value)


class FluidQueueDataset(_Settings, datasets.QueueDataset):
    """Fluid's `QueueDataset`: files that are read while they are trained on."""

    fluid_name = "QueueDataset"

    def batches(self, first: Place = BEGINNING) -> Generator[Batch, None, None]:
        """Yield the batches of one pass; none where no file was named, as in Fluid."""
        if self._files:
            yield from super().batches(first)


QueueDataset = FluidQueueDataset  # its name in PaddlePaddle


class FluidInMemoryDataset(_Settings, datasets.InMemoryDataset):
    """Fluid's `InMemoryDataset`: files whose examples are kept and shuffled in memory."""

    fluid_name = "InMemoryDataset"

    @property
    def parse_ins_id(self) -> bool:
        """True if an ins_id stands in front of each line."""
        return INS_ID in self.texts

    @property
    def parse_content(self) -> bool:
        """True if a content stands in front of each line."""
        return CONTENT in self.texts

    def set_merge_by_lineid(
        self,
        merge_size: int | Sequence[Any] = 2,
        erase_duplicate_feas: bool = True,
        min_merge_size: int = 2,
        keep_unmerged_ins: bool = True,
    ) -> None:
        """Merge `merge_size` records with one ins_id, see `psrt.InMemoryDataset`.

        Until 1.6 the vars to merge stood there: then any number is merged, of every slot, and the
        other arguments have no effect.
        """
        super().set_merge_by_lineid(merge_size if isinstance(merge_size, int) else 0)

    def set_fea_eval(self, record_candidate_size: int, fea_eval: bool = True) -> None:
        """Without effect: `slots_shuffle` needs no records set apart."""

    def set_generate_unique_feasigns(self, generate_uni_feasigns: bool, shard_num: int) -> None:
        """Without effect: rows are made on pservers when ids are first trained."""

    def generate_local_tables_unlock(self, *arguments: int) -> None:
        """Without effect: rows are made on pservers when ids are first trained."""

    def set_queue_num(self, queue_num: int) -> None:
        """Without effect: records are in one place, and any thread may read them."""

    def set_fleet_send_sleep_seconds(self, fleet_send_sleep_seconds: int = 0) -> None:
        """Without effect: a sender waits for the receiver."""


InMemoryDataset = FluidInMemoryDataset  # its name in PaddlePaddle


Dataset: TypeAlias = FluidQueueDataset | FluidInMemoryDataset


class CoreDataset:
    """A dataset by the methods of Fluid's C++ core, `fluid.core.Dataset`.

    It holds the settings of `of`, or of a queue of its own. Any other method is that of `of`.
    """

    def __init__(self, name: str = "MultiSlotDataset", of: Any = None) -> None:
        self.name, self._of = name, FluidQueueDataset() if of is None else of
        self._trainer_num = 1
        self.set_thread_num, self.set_filelist = self._of.set_thread, self._of.set_filelist
        self.set_hdfs_config = self._of.set_hdfs_config

    def get_thread_num(self) -> int:
        """Return the number of reader threads."""
        return int(self._of._threads)

    def get_filelist(self) -> list[str]:
        """Return the files."""
        return list(self._of._files)

    def set_trainer_num(self, trainer_num: int) -> None:
        """Set the number of trainers."""
        self._trainer_num = int(trainer_num)

    def get_trainer_num(self) -> int:
        """Return the number of trainers."""
        return self._trainer_num

    def get_hdfs_config(self) -> tuple[str, str]:
        """Return name and user of the file system."""
        name, user = getattr(self._of, "_file_system", ("", ""))
        return name, user

    def get_download_cmd(self) -> str:
        """Return the command of `set_download_cmd`."""
        return str(getattr(self._of, "_download_cmd", "cat"))

    def merge_by_lineid(self) -> None:
        """Without effect: records are merged on first use, see `set_merge_by_lineid`."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._of, name)


class DatasetFactory:
    """Factory of datasets by name."""

    def create_dataset(self, datafeed_class: str = "QueueDataset") -> Dataset:
        """Return a QueueDataset or InMemoryDataset; raises `ConfigError` for another name."""
        if datafeed_class not in _DATASETS:
            names = ", ".join(_DATASETS)
            raise ConfigError(
                f"create_dataset has no {datafeed_class}; psrt has {names}.",
                hint=did_you_mean(datafeed_class, _DATASETS),
            )
        return _DATASETS[datafeed_class]()


_DATASETS: dict[str, type[Dataset]] = {
    "QueueDataset": FluidQueueDataset,
    "FileInstantDataset": FluidQueueDataset,
    "InMemoryDataset": FluidInMemoryDataset,
}


_SETTERS = {
    "batch_size": "set_batch_size",
    "thread_num": "set_thread",
    "use_var": "set_use_var",
    "pipe_command": "set_pipe_command",
    "fs_name": "set_hdfs_config",
    "download_cmd": "set_download_cmd",
    "parse_ins_id": "set_parse_ins_id",
    "parse_content": "set_parse_content",
    "merge_size": "set_merge_by_lineid",
    "queue_num": "set_queue_num",
    "fleet_send_batch_size": "set_fleet_send_batch_size",
    "fleet_send_sleep_seconds": "set_fleet_send_sleep_seconds",
}
_WITHOUT_EFFECT = [("fs_name", ""), ("fs_ugi", ""), ("download_cmd", "cat"), ("input_type", 0)]


__all__ = [
    "CoreDataset",
    "DatasetFactory",
    "FluidInMemoryDataset",
    "FluidQueueDataset",
    "InMemoryDataset",
]
__all__ += ["QueueDataset"]
