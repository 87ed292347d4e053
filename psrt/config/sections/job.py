"""The sections `[job]`, `[data]` and `[partition]` of a job file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psrt.config.sections.tables import TableConfig
from psrt.config.settings import setting
from psrt.core.precision import WirePrecision
from psrt.core.specs import MODES, CommunicationMode, Sync

SHARES = ("modulo", "suffix", "contiguous", "size")
DATA_FORMATS = ("multislot", "libsvm", "csv", "pairs", "criteo", "parquet", "arrow")


@dataclass(frozen=True)
class DataConfig:
    """The files of a job and how they are read. Globs are relative to the TOML file.

    `columns` and `options` are checked by the format: `psrt.data.formats.fields`,
    `psrt.data.formats`.
    """

    train: tuple[str, ...] = setting(
        (), "Globs or URLs of the training files, plain, gzip or zstd."
    )
    test: tuple[str, ...] = setting((), "Globs or URLs of the test files, read after training.")
    format: str = setting("multislot", "What the files are.", choices=DATA_FORMATS)
    shard: str = setting(
        "modulo",
        "Which trainer a file is for: by its number in the list modulo trainers, by the number in "
        "its name, runs of files, or as even in bytes as can be.",
        choices=SHARES,
    )
    shuffle_seed: int = setting(
        -1, "Draws another order of a trainer's files for each epoch; -1 = as listed.", minimum=-1
    )
    batch_size: int = setting(512, "Examples of one mini-batch of one trainer.", minimum=1)
    epochs: int = setting(1, "Passes over the training files.", minimum=1)
    reader_threads: int = setting(1, "Threads that read and parse files.", minimum=1)
    queue_batches: int = setting(8, "Parsed mini-batches that may wait for the trainer.", minimum=1)
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class PartitionConfig:
    """How dense parameters are cut and dealt to pservers."""

    slice_var_up: bool = setting(True, "Cut large parameters into blocks.")
    min_block_size: int = setting(8192, "Least elements of a block.", minimum=1)
    max_block_size: int = setting(
        1 << 20,
        "Most elements of a block. Blocks of a pserver that hold twice as many together travel and "
        "are updated beside each other, at least so many elements at a time.",
        minimum=1,
    )
    split_method: str = setting(
        "RoundRobin", "How blocks are dealt to pservers.", choices=("RoundRobin", "HashName")
    )


@dataclass(frozen=True)
class JobConfig:
    """What a job file says: the program, its data, and how gradients travel.

    `path` is the absolute path of the TOML file (empty when built in code); every relative path in
    a job is relative to its directory, see `resolve`. `params` are the keyword arguments of
    `build()`; `tables` is what counts instead of what the program says of sparse tables.
    """

    name: str = setting("", "Name of the job, in logs and in the handshake.")
    program: str = setting("", "Python file with build(), relative to this file.")
    seed: int = setting(0, "Another seed, other initial values and other draws.", minimum=0)
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    communication: CommunicationMode = dataclasses.field(default_factory=Sync)
    wire: WirePrecision = dataclasses.field(default_factory=WirePrecision)
    partition: PartitionConfig = dataclasses.field(default_factory=PartitionConfig)
    tables: dict[str, TableConfig] = dataclasses.field(default_factory=dict)
    path: str = ""

    @property
    def mode(self) -> str:
        """The communication mode by its configuration name."""
        return next(name for name, cls in MODES.items() if cls is type(self.communication))

    def resolve(self, relative: str) -> Path:
        """A path or glob of the job as an absolute one."""
        return Path(self.path).parent / relative

    @property
    def program_path(self) -> Path:
        return self.resolve(self.program)
