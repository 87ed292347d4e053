"""`local` and `connect`: sessions of a script, with rank and pservers of its environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from psrt.config.load import environment, job_without_file, load
from psrt.config.sections import TrainerConfig
from psrt.core.errors import ConfigError
from psrt.core.specs import MODES, Collective, CommunicationMode
from psrt.core.threads import schedule
from psrt.partition.arguments import endpoints_of, trainer_numbers
from psrt.torch.backends import ConnectedTables
from psrt.torch.cuts import LocalTableCuts
from psrt.torch.first_rows import warm_start_text
from psrt.torch.here import LocalTables
from psrt.torch.session import MAX_LOOKUPS, TableSession

_RANKS = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Variables of torchrun, Open MPI, MPICH and Slurm."""


class Rank(NamedTuple):
    trainer_id: int
    trainers: int


def rank_of(variables: Mapping[str, str]) -> Rank | None:
    """The rank that a launcher has given this process; None without a launcher."""
    for rank, size in _RANKS:
        if rank in variables and size in variables:
            return Rank(int(variables[rank]), int(variables[size]))
    return None


def local(
    *,
    seed: int = 0,
    max_lookups: int = MAX_LOOKUPS,
    warm_start: str = "",
    checkpoint_dir: str = "",
    resume: str | int = "",
) -> TableSession:
    """Return a session with tables in this process: tests and notebooks need no pservers.

    They begin with the rows of `warm_start`, a directory of `save_tables`, of a saved model or of
    cuts. A `Checkpointer` makes cuts of them in `checkpoint_dir`, a path or a URL; `resume` is the
    number of the one to begin with, or "latest". Raises `ConfigError` if there is no such cut.
    """
    cuts = LocalTableCuts(checkpoint_dir, str(resume))
    return TableSession(LocalTables(cuts, warm_start_text(warm_start)), seed, max_lookups)


def connect(
    endpoints: str | Sequence[str] | None = None,
    mode: str | CommunicationMode = "sync",
    *,
    trainer_id: int | None = None,
    trainers: int | None = None,
    job_id: str = "torch",
    seed: int = 0,
    timeout_s: float = 180.0,
    max_lookups: int = MAX_LOOKUPS,
    warm_start: str = "",
    durability: str | None = None,
    retained_mib: int | None = None,
) -> TableSession:
    """Return a session with tables on pservers, "host:port,host:port" or a list.

    What is not given comes from the environment: endpoints from the variables of a trainer, the
    rank from those of torchrun, `mpirun` and `srun`, or of a trainer. `mode` is a name of
    `psrt.core.specs.MODES` or a mode. Pservers read `warm_start`, a directory as in `local`, all of
    them. Nothing is sent before the first lookup.

    With a `durability` the job goes on when a pserver is killed: "cut" and "delta" need pservers
    with a directory of cuts, started again with --recover; "replica" needs two pservers or more.
    Each trainer keeps up to `retained_mib` of pushes, 1024 by default, until they are durable. If
    not given, both come from PSRT_JOB_DURABILITY and PSRT_JOB_RETAINED_MIB; the calling thread's
    scheduling comes from PSRT_TRAINER_SCHEDULING. Raises `ConfigError` without endpoints, for a
    rank that is not below the number of trainers, for collective, and for an unknown durability.
    """
    chosen = _served_mode(mode)
    rank = rank_of(environment())
    settings = load(TrainerConfig, flags=rank._asdict() if rank else {}).config
    schedule(settings.scheduling)
    rank = _checked_rank(rank or Rank(settings.trainer_id, settings.trainers), trainer_id, trainers)
    job = job_without_file({"durability": durability, "retained_mib": retained_mib})
    backend = ConnectedTables(
        _reachable(endpoints if endpoints is not None else settings.endpoints),
        chosen,
        *rank,
        job_id,
        timeout_s,
        warm_start_text(warm_start),
        job.durability,
        job.retained_bytes,
    )
    return TableSession(backend, seed, max_lookups)


def _checked_rank(found: Rank, trainer_id: int | None, trainers: int | None) -> Rank:
    """The rank of the environment, with what the script gives instead."""
    own = found.trainer_id if trainer_id is None else trainer_id
    return Rank(*trainer_numbers(own, found.trainers if trainers is None else trainers))


def _reachable(endpoints: str | Sequence[str]) -> tuple[str, ...]:
    """The endpoints of pservers; raises `ConfigError` without any."""
    if found := tuple(endpoints_of(endpoints)):
        return found
    raise ConfigError(
        "pt.connect() was given no pservers, and the environment names none.",
        hint='Give it their endpoints, "10.0.0.1:6170,10.0.0.2:6170", set PSRT_TRAINER_ENDPOINTS, '
        "or start the script by psrt launch. pt.local() has tables in this process.",
    )


def _served_mode(mode: str | CommunicationMode) -> CommunicationMode:
    """Return a mode with pservers; raises `ConfigError` for others."""
    chosen = MODES[mode]() if isinstance(mode, str) and mode in MODES else mode
    if not isinstance(chosen, str | type | Collective):
        return chosen
    served = [name for name, kind in MODES.items() if kind is not Collective]
    raise ConfigError(f"psrt.torch has no mode {mode!r}.", hint=f"Use one of {', '.join(served)}.")
