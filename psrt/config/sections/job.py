"""The sections `[job]`, `[data]` and `[partition]` of a job file."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psrt.config.sections.tables import TableConfig
from psrt.config.sections.validation import ValidationConfig
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
    validation: tuple[str, ...] = setting(
        (), "Globs or URLs of the files of [validation], read while training goes on."
    )
    format: str = setting("multislot", "Format of the files.", choices=DATA_FORMATS)
    shard: str = setting(
        "modulo",
        "Assignment of files to trainers: by position in the list modulo trainers, by the number "
        "in the file name, by runs of files, or near-equal in bytes.",
        choices=SHARES,
    )
    shuffle_seed: int = setting(
        -1, "Seed of the order of a trainer's files, drawn per epoch; -1 = as listed.", minimum=-1
    )
    batch_size: int = setting(512, "Examples of one mini-batch of one trainer.", minimum=1)
    epochs: int = setting(1, "Passes over the training files.", minimum=1)
    reader_threads: int = setting(1, "Threads that read and parse files.", minimum=1)
    queue_batches: int = setting(8, "Parsed mini-batches that may wait for the trainer.", minimum=1)
    columns: dict[str, Any] = dataclasses.field(default_factory=dict)
    options: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclass(frozen=True)
class PartitionConfig:
    """Slicing of dense parameters into blocks, and their distribution to pservers."""

    slice_var_up: bool = setting(True, "Cut large parameters into blocks.")
    min_block_size: int = setting(8192, "Fewest elements of a block.", minimum=1)
    max_block_size: int = setting(
        1 << 20,
        "Most elements of a block, and fewest of a bucket: blocks that travel and are updated "
        "together. A pserver with fewer than twice as many elements has one bucket.",
        minimum=1,
    )
    split_method: str = setting(
        "Balanced",
        "Distribution of blocks to pservers: near-equal in bytes, in turn, or by hash of the name.",
        choices=("Balanced", "RoundRobin", "HashName"),
    )


@dataclass(frozen=True)
class JobConfig:
    """A job: the program, its data, and the communication of gradients.

    `path` is the absolute path of the TOML file (empty for a job built in code); relative paths in
    a job are relative to its directory, see `resolve`. `params` are the keyword arguments of
    `build()`; `tables` replaces options that the program sets for sparse tables.
    """

    name: str = setting("", "Name of the job, in logs and in the handshake.")
    program: str = setting("", "Python file with build(), relative to this file.")
    seed: int = setting(0, "Seed of initial values and random draws.", minimum=0)
    durability: str = setting(
        "none",
        "Pushes that survive the kill of a pserver: none; cut = those in the newest cut, and those "
        "after it, which trainers keep and send again; delta = the same, and pservers also write "
        "what has changed, every delta_every_s of [pserver]. Both need checkpoint_dir. "
        "replica = another pserver has a copy of each, and takes over within a second.",
        choices=("none", "cut", "delta", "replica"),
    )
    retained_mib: int = setting(
        1024, "Memory for pushes that a trainer keeps until they are durable, in MiB.", minimum=1
    )
    warm_start: str = setting(
        "",
        "Begin with the parameters of these cuts (DIR or DIR#ID) or of this saved model; empty = "
        "with initial values.",
    )
    warm_start_map: str = setting("", "TOML file with rules that map names for warm_start.")
    warm_start_strict: bool = setting(
        False, "Parameters that warm_start does not match are an error."
    )
    params: dict[str, Any] = dataclasses.field(default_factory=dict)
    data: DataConfig = dataclasses.field(default_factory=DataConfig)
    communication: CommunicationMode = dataclasses.field(default_factory=Sync)
    wire: WirePrecision = dataclasses.field(default_factory=WirePrecision)
    partition: PartitionConfig = dataclasses.field(default_factory=PartitionConfig)
    validation: ValidationConfig = dataclasses.field(default_factory=ValidationConfig)
    tables: dict[str, TableConfig] = dataclasses.field(default_factory=dict)
    path: str = ""

    @property
    def retained_bytes(self) -> int:
        """Memory of a trainer for pushes that are not durable yet; 0 = it keeps none."""
        return self.retained_mib << 20 if self.durability != "none" else 0

    @property
    def mode(self) -> str:
        """The communication mode by its configuration name."""
        return next(name for name, cls in MODES.items() if cls is type(self.communication))

    def resolve(self, relative: str) -> Path:
        """Return a path or glob of the job as an absolute one."""
        return Path(self.path).parent / relative

    @property
    def program_path(self) -> Path:
        return self.resolve(self.program)
