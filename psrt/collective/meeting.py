"""From a seat to a group: all processes meet at a store, compare what they train, and connect."""

from __future__ import annotations

from typing import Any

from psrt.collective.group import TrainerGroup, in_time
from psrt.collective.presence import GroupPresence
from psrt.collective.seat import GroupSeat
from psrt.core.errors import (
    ConfigError,
    DeadlineError,
    ErrorCode,
    PsrtError,
    UnavailableError,
    from_code,
)
from psrt.core.extras import required

NEEDS = "mode collective"


def meet(
    seat: GroupSeat, mark: str, connect_timeout_s: float, call_timeout_s: float
) -> TrainerGroup:
    """Wait for all processes of the group, and connect to them.

    `mark` is the identity of what this process trains, equal in all of them. A later call waits at
    most `call_timeout_s` for another process. A process that has initialised torch.distributed
    itself keeps its default group, and gets a new one here.

    Raises `ConfigError` without torch, `UnavailableError` if nobody keeps the store,
    `DeadlineError` naming those that did not come, and `PsrtError` JOB_MISMATCH naming those that
    train something else.
    """
    torch = required("torch", "torch", NEEDS)
    distributed = required("torch.distributed", "torch", NEEDS)
    if seat.device >= 0:
        _check_device(torch, seat.device)
    store, beats = (_store(distributed, seat, connect_timeout_s, of) for of in range(2))
    _check_alone(store, seat)
    presence = GroupPresence(store, beats, seat.rank, seat.size)
    try:
        _check_arrived(presence, seat, mark, connect_timeout_s)
    except PsrtError as error:
        presence.leave(f"it gave up: {error.code.name}")
        raise
    owned = not distributed.is_initialized()
    timeout = in_time(call_timeout_s)
    if owned:
        distributed.init_process_group(
            seat.backend, store=store, rank=seat.rank, world_size=seat.size, timeout=timeout
        )
    group = None if owned else distributed.new_group(backend=seat.backend, timeout=timeout)
    return TrainerGroup(seat, distributed, group, presence, owned)


def _store(distributed: Any, seat: GroupSeat, timeout_s: float, number: int) -> Any:
    """A connection to the store; the first one of rank 0 also opens it."""
    opens = seat.rank == 0 and not seat.is_hosted and number == 0
    try:
        store = distributed.TCPStore(
            seat.host,
            seat.port,
            is_master=opens,
            timeout=in_time(timeout_s),
            wait_for_workers=False,
        )
    except RuntimeError as error:
        did = "could not listen" if opens else f"did not answer within {timeout_s:g} s"
        raise UnavailableError(
            f"trainer {seat.rank} found nobody to meet: trainer 0 {did} at {seat.address}.",
            hint="Name the endpoint of trainer 0 first, the same in every trainer; its port must "
            "be free on its host.",
        ) from error
    return distributed.PrefixStore(f"psrt/{seat.attempt}", store)


def _check_alone(store: Any, seat: GroupSeat) -> None:
    if int(store.add(f"seats/{seat.rank}", 1)) > 1:
        raise ConfigError(
            f"two processes are trainer {seat.rank} of the group at {seat.address}.",
            hint="Give every process its own trainer_id (PADDLE_TRAINER_ID).",
        )


def _check_arrived(presence: GroupPresence, seat: GroupSeat, mark: str, timeout_s: float) -> None:
    marks = presence.notes("mark", mark, timeout_s)
    absent = [f"trainer {rank}" for rank, found in enumerate(marks) if found is None]
    if absent:
        raise DeadlineError(
            f"{' and '.join(absent)} did not come to {seat.address} within {timeout_s:g} s; "
            f"trainer {seat.rank} gave up.",
            hint="See its log; all trainers of a group start together, each with its own number.",
        )
    others = [f"trainer {rank}" for rank, found in enumerate(marks) if found != marks[0]]
    if others:
        raise from_code(
            ErrorCode.JOB_MISMATCH,
            f"{' and '.join(others)} and trainer 0 train different programs; nothing was trained.",
            "Start all trainers with the same job, of the same version.",
        )


def _check_device(torch: Any, device: int) -> None:
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device >= count:
        raise ConfigError(
            f"device {device} was selected, but this host has {count} GPU(s) that torch can use.",
            hint="Select others, or none: gradients then travel between CPUs.",
        )


__all__ = ["meet"]
