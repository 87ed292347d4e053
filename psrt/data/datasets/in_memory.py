"""`InMemoryDataset`: all records of its files in memory, in any order.

    dataset = psrt.InMemoryDataset(slots, files=["part-*"], batch_size=512, threads=2)
    dataset.load_into_memory()
    for epoch in range(3):
        dataset.local_shuffle()
        for batch in dataset.batches(): …

`psrt.data.datasets.records` lists the bytes it takes. Loading threads end with their load. A
dataset belongs to one thread; records that are preloaded appear after `wait_preload_done`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from functools import partial
from typing import Any

import numpy as np

from psrt.core.errors import ConfigError
from psrt.data.checks import at_least
from psrt.data.datasets.loading import Loading, PackedBatches, ParsedLines, RecordReader
from psrt.data.datasets.memory import RecordMemory
from psrt.data.datasets.packing import Packer
from psrt.data.datasets.prefixes import CONTENT, INS_ID, Prefixed
from psrt.data.datasets.record_lines import RecordParser
from psrt.data.datasets.records import Layout
from psrt.data.datasets.scattering import BATCH_RECORDS, RecordExchange, Scattering
from psrt.data.formats import Format, MultiSlotFormat
from psrt.data.reading import DatasetSettings, reader_of
from psrt.data.slots import Batch, DataVar, Slot, batch_rows

_PARSED_ROWS = 2048  # they stay in the processor's cache until they are packed


class InMemoryDataset(DatasetSettings):
    """`seed` makes shuffles repeatable: the n-th of a dataset is a function of seed and n.

    `settings` are those of `DatasetSettings`. `memory` gives access to the records.
    """

    def __init__(
        self, use_var: Sequence[DataVar | Slot] = (), *, seed: int = 0, **settings: Any
    ) -> None:
        super().__init__(use_var, **settings)
        self.memory = RecordMemory()
        self._words: dict[str, bool] = {}
        self._merge_size: int | None = None
        self._send_batch_size = BATCH_RECORDS
        self._loading: tuple[Loading, Layout] | None = None
        self._seed, self._draws = seed, 0

    def set_parse_ins_id(self, parse_ins_id: bool) -> None:
        """Set whether MultiSlot lines begin with `1 <ins_id>`."""
        self._words[INS_ID] = parse_ins_id

    def set_parse_content(self, parse_content: bool) -> None:
        """Set whether lines begin with `1 <content>`, behind the ins_id if there is one."""
        self._words[CONTENT] = parse_content

    def set_merge_by_lineid(self, merge_size: int = 2) -> None:
        """Merge records with one ins_id, see `psrt.data.datasets.merging`.

        Records are merged on first use: after a global shuffle, if there is one.
        """
        if merge_size < 0:
            raise ConfigError(f"merge_size is 0 (any number) or more, not {merge_size}.")
        self._merge_size = merge_size
        self.set_parse_ins_id(True)

    @property
    def texts(self) -> tuple[str, ...]:
        """Names of the words in front of a line, in order, which are kept with a record."""
        return tuple(word for word in (INS_ID, CONTENT) if self._words.get(word))

    def load_into_memory(self, is_shuffle: bool = False) -> None:
        """Read all files; they replace the memory once they are read."""
        self.preload_into_memory()
        self.wait_preload_done()
        if is_shuffle:
            self.local_shuffle()

    def preload_into_memory(self, thread_num: int | None = None) -> None:
        """Begin to read all files in the background, in `thread_num` threads or those set."""
        if self._loading is not None:
            raise ConfigError("the dataset is loading already.", hint="wait_preload_done() first.")
        paths, format, source = self._paths(), self._format(), self._source()
        count_bytes = self.counters.counter("data_bytes", "bytes of text parsed").add
        layout = Layout(format.slots)

        def reader() -> RecordReader:
            if isinstance(format, MultiSlotFormat):
                return ParsedLines(RecordParser(layout), source, count_bytes)
            batches = partial(reader_of, format, _PARSED_ROWS, source, count_bytes)
            return PackedBatches(batches, Packer(layout, self.texts))

        loading = Loading(paths, source, reader, thread_num or self._threads)
        self._loading = (loading, layout)

    def wait_preload_done(self) -> None:
        """Wait for the files being read; raises the first error of a reading thread."""
        if self._loading is None:
            raise ConfigError("the dataset is not loading.", hint="preload_into_memory() first.")
        (loading, layout), self._loading = self._loading, None
        try:
            pieces = loading.wait(self.wait_timeout_s)
        finally:
            loading.close()
        self.memory.load(layout, pieces, self._merge_size)

    def batches(self, first: int = 0) -> Generator[Batch, None, None]:
        """Yield batches of the records from number `first` on, arrays in the shapes of the vars."""
        examples = self.counters.counter("data_examples", "examples handed to the trainer")
        for batch in self.memory.batches(self._batch_size, first):
            examples.add(batch_rows(batch))
            yield self._shaped(batch)

    def local_shuffle(self, seed: int | None = None) -> None:
        """Put the records into a random order, drawn from `seed` if it is given."""
        self.memory.shuffle(self._draw(seed))

    def global_shuffle(
        self, fleet: RecordExchange | None = None, thread_num: int = 0, seed: int | None = None
    ) -> None:
        """Spread the records of all trainers over all trainers, then put them into a random order.

        `fleet` is Fluid's, or a `ConnectedExecutor`; every trainer calls this equally often. Each
        record goes to a trainer drawn for it, or, to be merged, to that of its ins_id. Exchanged
        slots get their own values back. Without `fleet` this is a local shuffle. `thread_num` is
        PaddlePaddle's and ignored: psrt has one thread per other trainer. After an error the memory
        is empty.
        """
        if fleet is not None:
            scattering = Scattering(
                self.memory.layout,
                self.memory.take(),
                self.texts,
                self._send_batch_size,
                seed=int(self._draw(seed).integers(1 << 62)),
                by="" if self._merge_size is None else INS_ID,
            )
            self.memory.put(fleet.exchange_records(scattering))
        self.local_shuffle(seed)

    def set_fleet_send_batch_size(self, fleet_send_batch_size: int = BATCH_RECORDS) -> None:
        """Set roughly how many records of a global shuffle travel together."""
        self._send_batch_size = at_least(1, "fleet_send_batch_size", fleet_send_batch_size)

    def slots_shuffle(self, slots: Sequence[str]) -> None:
        """Give each record, in these slots, the values of one other record.

        Slots exchanged before get their own values back; so do all if `slots` is empty.
        """
        self.memory.exchange(slots, self._draw())

    def release_memory(self) -> None:
        """Drop the records, and those being loaded."""
        if self._loading is not None:
            self._loading[0].close()
            self._loading = None
        self.memory.clear()

    def get_memory_data_size(self, fleet: RecordExchange | None = None) -> int:
        """Return the number of records; with `fleet`, as in `global_shuffle`, of all trainers."""
        return _summed(len(self.memory), fleet)

    def get_shuffle_data_size(self, fleet: RecordExchange | None = None) -> int:
        """Return the number of shuffled records: all or none of a trainer."""
        return _summed(len(self.memory) if self.memory.is_shuffled else 0, fleet)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the records and their order."""
        return self.memory.size_bytes

    def _format(self) -> Format:
        if not self.texts:
            return super()._format()
        if self._format_given != "multislot":
            raise ConfigError(
                f"format {self._format_given} has no ins_id or content.",
                hint="They stand in front of MultiSlot lines: set_parse_ins_id(False).",
            )
        return Prefixed(self._slots, self.texts)

    def _draw(self, seed: int | None = None) -> np.random.Generator:
        self._draws += seed is None
        return np.random.default_rng([self._seed, self._draws] if seed is None else seed)


def _summed(records: int, fleet: RecordExchange | None) -> int:
    return records if fleet is None else fleet.sum_records(records)
