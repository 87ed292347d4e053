"""Communication modes as plain frozen data: six types, each with its own settings.

Every mode has an `on_trainer_loss`, the policy for a trainer that leaves without completing:
`abort` ends the job, `shrink` goes on without the trainer, `wait` keeps its place for a new
process. Sync aborts by default, because its result would depend on the time of the loss. In the
other modes each trainer's gradients are useful by themselves, so they shrink. Without pservers
(`Collective`) trainers end together.

docs/explanation/semantics.md describes the modes. Public through `psrt.core.specs`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeAlias


@dataclass(frozen=True)
class Sync:
    """Rounds of all live trainers."""

    on_trainer_loss: str = "abort"


@dataclass(frozen=True)
class Async:
    """Gradients are applied on arrival; trainers do not wait for each other.

    `merge` combines gradients of one push by `sum` or `average`. `thread_pool_size` is the number
    of pushes in flight. `dc_asgd` is the λ of delay compensation (Zheng et al. 2017), 0 = none.
    """

    max_merge_var_num: int = 1
    send_queue_size: int = 1
    send_wait_times: int = 5
    merge: str = "sum"
    min_send_grad_num_before_recv: int = 1
    independent_recv_thread: bool = True
    thread_pool_size: int = 1
    dc_asgd: float = 0.0
    on_trainer_loss: str = "shrink"


@dataclass(frozen=True)
class Ssp:
    """Stale synchronous parallel (Ho et al. 2013): async, but a trainer may be at most
    `max_steps_ahead` steps ahead of the slowest one that has not finished."""

    max_steps_ahead: int = 3
    on_trainer_loss: str = "shrink"


@dataclass(frozen=True)
class HalfAsync:
    """Async between trainers, synchronous within one.

    At every step the gradients of its replicas are averaged and pushed, and the step ends when
    parameters have arrived.
    """

    on_trainer_loss: str = "shrink"


@dataclass(frozen=True)
class Geo:
    """Optimizers run on the trainers, which exchange changes every `update_frequency` steps."""

    update_frequency: int = 100
    on_trainer_loss: str = "shrink"


@dataclass(frozen=True)
class Collective:
    """Trainers without pservers reduce gradients among themselves, and each updates everything.

    Gradients travel in buckets of up to `bucket_kib` KiB, while backward goes on.
    """

    bucket_kib: int = 1024
    on_trainer_loss: ClassVar[str] = "abort"


CommunicationMode: TypeAlias = Sync | Async | Ssp | HalfAsync | Geo | Collective

MODES: dict[
    str, type[Sync] | type[Async] | type[Ssp] | type[HalfAsync] | type[Geo] | type[Collective]
] = {
    "sync": Sync,
    "async": Async,
    "ssp": Ssp,
    "half_async": HalfAsync,
    "geo": Geo,
    "collective": Collective,
}
