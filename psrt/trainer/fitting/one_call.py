"""`psrt.fit`: train a model in one call, here or as one trainer of a cluster.

`ConnectedExecutor` and `LocalExecutor` are the long way, for loops of one's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from psrt.core.errors import ConfigError
from psrt.core.hints import did_you_mean
from psrt.core.specs import MODES, Collective, CommunicationMode
from psrt.data.slots import batch_rows
from psrt.executor.program import Executor, Feed
from psrt.graph.model import Model
from psrt.partition.transpiler import DistributeTranspiler
from psrt.trainer.fitting.feeds import Data, batches_of
from psrt.trainer.fitting.fitted import Fitted
from psrt.trainer.fitting.kept_rows import KeptRows
from psrt.trainer.fitting.local_executor import LocalExecutor
from psrt.trainer.inputs import Outputs
from psrt.trainer.measuring import NEWEST, EpochLosses, ScoredRows, Tally
from psrt.trainer.training import ConnectedExecutor

AnyExecutor: TypeAlias = LocalExecutor | ConnectedExecutor


def fit(
    model: Model,
    train: Data,
    valid: Data | None = None,
    *,
    epochs: int = 1,
    batch_size: int = 512,
    mode: str | CommunicationMode = "sync",
    cluster: str | Sequence[str] = (),
    trainers: int = 1,
    trainer_id: int = 0,
    save: str = "",
    callbacks: Sequence[Callable[[EpochLosses], object]] = (),
    say: Callable[[str], None] = print,
) -> Fitted:
    """Train `model`; returns its losses, predictions and rows.

    `train` and `valid` are arrays by name, globs of MultiSlot files, a dataset, or batches. Without
    `cluster`, "host:port,host:port" or a list, training happens here. With it this process is
    trainer `trainer_id` of `trainers`, in the communication `mode`, on data of its own; trainer 0
    waits for the others at the end. `save` names a directory for the model. `say` gets a line for
    each epoch, and each of `callbacks` its `EpochLosses`; training ends after an epoch for which
    one returns True, as `psrt.stop_early` does. If that is so on one trainer of a cluster, each of
    the others ends after the epoch it is in. Raises `ConfigError` for an unknown mode, and what
    training and callbacks raise.
    """
    executor = _executor(model, mode, cluster, trainers, trainer_id)
    outputs, history = Outputs(model), list[EpochLosses]()
    try:
        for epoch in range(1, epochs + 1):
            tally = _trained(executor, outputs, train, model, batch_size)
            tested = None if valid is None else _tested(executor, outputs, valid, model, batch_size)
            history.append(EpochLosses(epoch, tally, tested))
            say(history[-1].text())
            if _ends(executor, [callback(history[-1]) is True for callback in callbacks]):
                break
        fitted = _ended(executor, model, history, trainer_id)
        if save:
            fitted.save(save)
        return fitted
    finally:
        executor.close()


def _executor(
    model: Model,
    mode: str | CommunicationMode,
    cluster: str | Sequence[str],
    trainers: int,
    trainer_id: int,
) -> AnyExecutor:
    keep = Outputs(model).names
    if not cluster:
        return LocalExecutor(model.program, keep=keep)
    if isinstance(mode, str) and mode not in MODES:
        hint = did_you_mean(mode, MODES, f"psrt has {', '.join(MODES)}.")
        raise ConfigError(f"psrt.fit was given the mode {mode!r}.", hint=hint)
    chosen = MODES[mode]() if isinstance(mode, str) else mode
    if isinstance(chosen, Collective):
        raise ConfigError(
            "psrt.fit was given pservers and the mode collective, which trains without pservers.",
            hint="Choose another mode, or train a job file in mode collective.",
        )
    transpiler = DistributeTranspiler()
    transpiler.transpile(model.program, trainer_id, cluster, trainers, chosen)
    return ConnectedExecutor(transpiler.get_trainer_program(), keep=keep)


def _trained(
    executor: AnyExecutor, outputs: Outputs, data: Data, model: Model, batch_size: int
) -> Tally:
    """Train on one epoch."""
    tally = Tally(ScoredRows(NEWEST))
    for feed in batches_of(data, model, batch_size):
        fetched = executor.run(feed, outputs.names)
        tally.update(outputs.read(fetched), _examples(feed))
    return tally


def _ends(executor: AnyExecutor, wishes: Sequence[bool]) -> bool:
    """Return True if a callback of this trainer, or one of another, has ended the training."""
    if isinstance(executor, LocalExecutor):
        return any(wishes)
    if any(wishes):
        executor.end_early()
    return executor.ends_early()


def _tested(
    executor: AnyExecutor, outputs: Outputs, data: Data, model: Model, batch_size: int
) -> Tally:
    """Measure on held-back data, forward only; metrics count from zero before and after."""
    if isinstance(executor, ConnectedExecutor):
        executor.pull()
    scope, tally = executor.scope, Tally(ScoredRows())
    scope.reset_state(model.program)
    tester = Executor(model.program.clone(for_test=True), scope, source=executor)
    for feed in batches_of(data, model, batch_size):
        fetched = tester.run(feed, outputs.names, roles=("forward",))
        tally.update(outputs.read(fetched), _examples(feed))
    scope.reset_state(model.program)
    return tally


def _examples(feed: Feed) -> int:
    return batch_rows(dict(feed))


def _ended(
    executor: AnyExecutor, model: Model, history: list[EpochLosses], trainer_id: int
) -> Fitted:
    """End the training; of a cluster trainer 0 keeps the rows, since pservers end with it."""
    tables = [p.name for p in model.program.parameters.values() if p.sparse]
    if isinstance(executor, LocalExecutor):
        pages = {name: partial(executor.rows, name) for name in tables if _is_apart(model, name)}
        return Fitted(model, executor.scope, history, executor, pages)
    kept = KeptRows(model.program, {})
    if trainer_id == 0:
        executor.wait_for_others()
        kept = KeptRows(model.program, {name: list(executor.rows(name)) for name in tables})
    executor.stop()
    return Fitted(model, executor.scope, history, kept, kept.pages())


def _is_apart(model: Model, table: str) -> bool:
    """True for a table that no scope holds."""
    return model.program.parameters[table].distributed
