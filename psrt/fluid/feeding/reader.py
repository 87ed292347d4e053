"""`PyReader` and `DataLoader`: a user's generators as feeds of runs, read ahead by a thread.

    loader = fluid.io.DataLoader.from_generator(feed_list=[image, label], capacity=8)
    loader.set_sample_list_generator(fluid.io.batch(examples, 32))
    for feed in loader():
        exe.run(feed=feed, fetch_list=[loss])

With `iterable=False` the program of `feed_list` takes its batches itself: `start()`, then runs
without a feed until `core.EOFException`, then `reset()`. A thread ends with its iteration, see
`psrt.data.python.read_ahead`; the consumer gets what a generator raises.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from psrt.core.errors import DataError, ProgramError
from psrt.data.python import Reader, batch, buffered, map_readers
from psrt.fluid.core import EOFException
from psrt.fluid.feeding.data_feeder import DataFeeder
from psrt.fluid.feeding.feed_queue import FeedQueue
from psrt.fluid.framework import FluidProgram
from psrt.fluid.names import CPUPlace, Variable
from psrt.fluid.running import Batch, LoDTensor, feed_of, shared_out, tensors_of

Places: TypeAlias = CPUPlace | Sequence[CPUPlace] | None

_CAPACITY = 8


class DataLoaderBase:
    """The base of loaders by Fluid's name; one of a user's own defines both methods."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("a loader yields its batches by __iter__")

    def __next__(self) -> Any:
        raise NotImplementedError("loaders of psrt are iterated over: for feed in loader()")


class GeneratorLoader(DataLoaderBase):
    """The loader that `DataLoader.from_generator` makes.

    It yields a list with a feed for each place, or, with `return_list`, with the tensors of each in
    the order of `feed_list`. `capacity` batches are read ahead. With `drop_last`, batches that do
    not fill a round of all places are dropped. Raises `ProgramError` without `feed_list`.
    """

    def __init__(
        self,
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        drop_last: bool = True,
    ) -> None:
        if not feed_list:
            raise ProgramError("A loader was made without feed_list, the data vars it feeds.")
        self._vars = list(feed_list)
        self._capacity = capacity or _CAPACITY
        self._iterable, self._return_list, self._drop_last = iterable, return_list, drop_last
        self._feeds: Callable[[], Iterator[Batch]] | None = None
        self._places = 1
        self._running: Generator[Batch, None, None] | None = None
        self._queue: FeedQueue | None = None
        if not iterable:
            owner: Any = self._vars[0].program
            owner.origin.loaders.append(self)

    @property
    def vars(self) -> list[Variable]:
        """The data vars it feeds."""
        return list(self._vars)

    @property
    def iterable(self) -> bool:
        """True for a loader that is iterated over, False for one that runs take batches from."""
        return self._iterable

    @property
    def queue(self) -> FeedQueue:
        """The queue that a program may push batches into itself, with no generator set."""
        if self._queue is None:
            self._queue = FeedQueue(self._capacity)
        return self._queue

    def set_sample_generator(
        self, reader: Reader[Any], batch_size: int, drop_last: bool = True, places: Places = None
    ) -> GeneratorLoader:
        """Take examples from `reader`: a value for each var."""
        return self.set_sample_list_generator(batch(reader, batch_size, drop_last), places)

    def set_sample_list_generator(
        self, reader: Reader[Any], places: Places = None
    ) -> GeneratorLoader:
        """Take lists of examples from `reader`."""
        feeder = DataFeeder(self._vars)
        if any(var.lod_level > 1 for var in self._vars):
            feeds = map_readers(feeder.feed, reader)
            return self._set(lambda: map(self._named, feeds()), places)
        return self._set(lambda: map(feeder.batch_of, reader()), places)

    def set_batch_generator(self, reader: Reader[Any], places: Places = None) -> GeneratorLoader:
        """Take batches from `reader`: an array or ragged value for each var, or a feed."""
        return self._set(lambda: map(self._named, reader()), places)

    def __call__(self) -> Iterator[Any]:
        return iter(self)

    def __iter__(self) -> Iterator[Any]:
        """Iterate anew, from the start of the generator."""
        if not self._iterable:
            raise ProgramError(
                "A loader with iterable=False is not iterated over.",
                hint="Call start(), run the program without a feed, and reset() at EOFException.",
            )
        rounds = batch(self._begun, self._places, self._drop_last)()
        listed = ([tensors_of(feed) for feed in feeds] for feeds in rounds)
        return map(self._listed, listed) if self._return_list else listed

    def start(self) -> None:
        """Let runs without a feed take batches; raises `ProgramError` if started already."""
        if self._iterable:
            raise ProgramError(
                "start() is for a loader with iterable=False.", hint="Iterate over this one."
            )
        if self._running is not None:
            raise ProgramError("The loader is started already.", hint="Call reset() before.")
        self._running = self._begun()

    def reset(self) -> None:
        """End an iteration, complete or not; `start` begins a new one."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def _reset(self) -> None:
        """Without effect: an iteration that is left ends by itself."""

    def next_feed(self, replicas: int = 1) -> Batch:
        """Return the feed of the next run: a batch for each replica, joined.

        Raises `EOFException` from the end of the data until `reset`. Batches that do not fill a
        round of all replicas end the data with `drop_last`, and are a run of their own without.
        """
        if self._running is None and self._queue is not None and self._feeds is None:
            self._running = self._pushed(self._queue)
        if self._running is None:
            raise ProgramError(
                f"The loader of {self._vars[0].name} is not started, and the run has no feed.",
                hint="Call its start().",
            )
        count = max(replicas, self._places)
        parts = next(batch(lambda: self._running or (), count, self._drop_last)(), None)
        if parts is None:
            raise EOFException(f"the generator that feeds {self._vars[0].name} has ended")
        return feed_of(parts)

    @classmethod
    def _check_input_array(cls, item: Any) -> None:
        """Raise `TypeError` for lists of different lengths, which make no array."""
        try:
            made = np.asarray(item)
        except ValueError:
            made = np.empty(0, object)
        if made.dtype == object:
            raise TypeError("A batch holds lists of different lengths; use create_lod_tensor.")

    def _set(self, feeds: Callable[[], Iterator[Batch]], places: Places) -> GeneratorLoader:
        self._feeds = feeds
        self._places = len(places) if isinstance(places, Sequence) else 1
        return self

    def _begun(self) -> Generator[Batch, None, None]:
        if self._feeds is None:
            raise ProgramError(
                "The loader has no generator.", hint="Call one of its set_…_generator methods."
            )
        return buffered(self._feeds, self._capacity)()

    def _pushed(self, queue: FeedQueue) -> Generator[Batch, None, None]:
        yield from map(self._named, queue)

    def _named(self, given: Any) -> Batch:
        graph = self._vars[0].program.graph
        if isinstance(given, Mapping):
            return feed_of(given, graph)
        names = [var.name for var in self._vars]
        if len(given) != len(names):
            raise DataError(
                f"A batch has {len(given)} arrays, but the loader feeds {', '.join(names)}."
            )
        return feed_of(dict(zip(names, given, strict=True)), graph)

    def _listed(self, feeds: Sequence[dict[str, LoDTensor]]) -> list[Any]:
        return [[feed[var.name] for var in self._vars] for feed in feeds]


class PyReader(GeneratorLoader):
    """`GeneratorLoader` by its older name and methods."""

    decorate_sample_generator = GeneratorLoader.set_sample_generator
    decorate_sample_list_generator = GeneratorLoader.set_sample_list_generator
    decorate_batch_generator = GeneratorLoader.set_batch_generator
    decorate_paddle_reader = GeneratorLoader.set_sample_list_generator
    decorate_tensor_provider = GeneratorLoader.set_batch_generator

    @property
    def thread(self) -> _Iteration:
        """The iteration that is running, which `join` ends."""
        return _Iteration(self)

    @property
    def _loader(self) -> PyReader:
        return self


class _Iteration:
    """The running iteration of a loader, as users of threads see it."""

    def __init__(self, loader: GeneratorLoader) -> None:
        self._of = loader

    def join(self, timeout: float | None = None) -> None:
        """End the iteration and its thread; `timeout` has no effect."""
        self._of.reset()


class DataLoader:
    """Factory of loaders."""

    @staticmethod
    def from_generator(
        feed_list: Sequence[Variable] | None = None,
        capacity: int | None = None,
        use_double_buffer: bool = True,
        iterable: bool = True,
        return_list: bool = False,
        use_multiprocess: bool = False,
        drop_last: bool = True,
    ) -> GeneratorLoader:
        """Return a `GeneratorLoader`; threads make its batches, never processes."""
        return GeneratorLoader(
            feed_list, capacity, use_double_buffer, iterable, return_list, drop_last
        )

    @staticmethod
    def from_dataset(
        dataset: Any, places: Places = None, drop_last: bool = True
    ) -> Iterable[list[dict[str, LoDTensor]]]:
        """Return the batches of a dataset, in lists with a feed for each place.

        Batches that do not fill a round of all places are dropped, or, without `drop_last`, their
        examples are shared out over the places.
        """
        count = len(places) if isinstance(places, Sequence) else 1
        rounds = batch(dataset.batches, count, drop_last)

        def listed(feeds: list[Batch]) -> list[dict[str, LoDTensor]]:
            whole = len(feeds) == count
            return [tensors_of(feed) for feed in (feeds if whole else shared_out(feeds, count))]

        return _Again(lambda: map(listed, rounds()))


class _Again:
    """Iterable that begins anew each time, called or not."""

    def __init__(self, begin: Callable[[], Iterator[list[dict[str, LoDTensor]]]]) -> None:
        self._begin = begin

    def __iter__(self) -> Iterator[list[dict[str, LoDTensor]]]:
        return self._begin()

    __call__ = __iter__


def keep_data_loader_order(order: bool) -> None:
    """Without effect: batches come in order."""


def next_feed(program: FluidProgram, replicas: int = 1) -> Batch:
    """Return what the loaders of a program feed its next run, empty without loaders.

    Each of `replicas` takes a batch, as each device does in Fluid.
    """
    feed: Batch = {}
    for loader in program.origin.loaders:
        feed |= loader.next_feed(replicas)
    return feed_of(feed, program.graph) if feed else feed


__all__ = ["DataLoader", "DataLoaderBase", "GeneratorLoader", "PyReader"]
__all__ += ["keep_data_loader_order"]
