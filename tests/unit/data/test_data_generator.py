"""DataGenerator and its kind: what they write, what they refuse, and as a pipe command."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt
from psrt.core.errors import ConfigError, DataError
from psrt.core.tensors import Ragged
from psrt.data.formats.multislot import BatchParser
from psrt.data.python.generator import (
    DataGenerator,
    MultiSlotDataGenerator,
    MultiSlotStringDataGenerator,
    Sample,
)
from psrt.data.slots import Slot

Made = Callable[[], Iterator[Any]]


def giving(*samples: Any, base: type[DataGenerator] = MultiSlotDataGenerator) -> DataGenerator:
    """A generator whose line `i` becomes `samples[i]`."""

    class Given(base):  # type: ignore[misc, valid-type]
        def generate_sample(self, line: str | None) -> Made:
            return lambda: iter([samples[int(line or 0)]])

    generator: DataGenerator = Given()
    return generator


def written(generator: DataGenerator, lines: int = 1) -> list[str]:
    out: list[str] = []
    generator.run([f"{i}\n" for i in range(lines)], out.append)
    return out


def test_a_sample_becomes_its_multislot_line_which_the_parser_reads() -> None:
    ids = np.array([7, 2**63], np.uint64)
    sample = [("click", [1]), ("dense", (0.5, np.float32(0.1))), ("ids", ids)]

    text = "".join(written(giving(sample)))

    assert text == "1 1 2 0.5 0.1 2 7 9223372036854775808\n"
    slots = (Slot("click", "uint64", 1), Slot("dense", "float", 2), Slot("ids", "uint64"))
    parser = BatchParser(slots, 4)
    list(parser.feed(np.frombuffer(text.encode(), np.uint8)))
    batch = parser.finish()
    assert batch is not None
    assert np.array_equal(np.asarray(batch["dense"]), np.array([[0.5, 0.1]], np.float32))


def test_none_is_left_out_and_an_empty_slot_has_no_values() -> None:
    generator = giving(None, [("a", [1]), ("b", [])])

    assert written(generator, 2) == ["1 1 0\n"]


def test_a_slot_of_ids_becomes_one_of_floats_when_a_float_comes() -> None:
    generator = giving([("a", [1]), ("b", [1])], [("a", [0.5]), ("b", [2])])

    assert written(generator, 2) == ["1 1 1 1\n", "1 0.5 1 2\n"]
    assert isinstance(generator, MultiSlotDataGenerator)
    assert generator.kinds == {"a": "float", "b": "uint64"}


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([("a", [1])], "Given, line 2 '1': expected 2 slots, a, b, found 1, a"),
        ([("b", [1]), ("a", [1])], "expected 2 slots, a, b, found 2, b, a"),
        ([("a", ["7"]), ("b", [1])], "slot 'a' holds a str"),
        ([("a", [True]), ("b", [1])], "slot 'a' holds a bool"),
        ([("a", [1]), ("b", "12")], "slot 'b' wants a list of numbers, found '12'"),
        ([("a", [1]), ("b", 12)], "slot 'b' wants a list of numbers, found 12"),
        ([("a", [1]), ("b", [1.0, float("nan")])], "slot 'b' holds a nan or an infinity"),
        ([("a", [2**64]), ("b", [1])], "'a' holds 18446744073709551616, beyond the 64 bits"),
        ([("a", [-(10**39)]), ("b", [1])], "slot 'a' holds .* beyond the range of float32"),
        ([("a", [1e300]), ("b", [1])], r"slot 'a' holds 1e\+300, beyond the range of float32"),
        ([("a", [Fraction(1, 3)]), ("b", [1])], "slot 'a' holds a Fraction"),
        ([1, 2], r"found \[1, 2\]"),
        ("a 1", "a sample is a list of"),
    ],
)
def test_a_wrong_sample_is_refused_by_its_line(second: Any, message: str) -> None:
    generator = giving([("a", [1]), ("b", [1])], second)

    with pytest.raises(DataError, match=message):
        written(generator, 2)


def test_slots_of_the_first_sample_need_distinct_names() -> None:
    with pytest.raises(DataError, match="distinct names"):
        written(giving([("a", [1]), ("a", [1])]))


def test_strings_are_written_unseen() -> None:
    sample = [("a", ["1", "x"]), ("b", [])]

    assert written(giving(sample, base=MultiSlotStringDataGenerator)) == ["2 1 x 0\n"]


def test_an_error_of_the_users_code_is_noted_with_its_line() -> None:
    class Numbers(MultiSlotDataGenerator):
        def generate_sample(self, line: str | None) -> Made:
            def samples() -> Iterator[Sample]:
                yield [("a", [int(line or "")])]

            return samples

    with pytest.raises(ValueError, match="invalid literal") as caught:
        Numbers().run(["1\n", "many\n"], lambda text: None)

    assert caught.value.__notes__ == ["psrt: Numbers was at line 2 'many'"]


def test_generate_batch_is_given_as_many_samples_as_were_set() -> None:
    sizes: list[int] = []

    class Padded(MultiSlotDataGenerator):
        def generate_sample(self, line: str | None) -> Made:
            return lambda: iter([[("a", [1] * int(line or 0))]])

        def generate_batch(self, samples: list[Sample]) -> Made:
            sizes.append(len(samples))
            longest = max(len(sample[0][1]) for sample in samples)
            return lambda: (
                [("a", [*sample[0][1], *[0] * (longest - len(sample[0][1]))])] for sample in samples
            )

    generator = Padded()
    generator.set_batch(2)
    assert written(generator, 3) == ["1 0\n", "1 1\n", "2 1 1\n"]
    assert sizes == [2, 1]
    with pytest.raises(ConfigError, match="1 sample or more, not 0"):
        generator.set_batch(0)


def test_samples_from_memory_need_no_input(capsys: pytest.CaptureFixture[str]) -> None:
    giving([("a", [5])]).run_from_memory()

    assert capsys.readouterr().out == "1 5\n"


def test_a_generator_without_its_methods_says_which_are_missing() -> None:
    with pytest.raises(NotImplementedError, match="no generate_sample"):
        DataGenerator().run(["1\n"], lambda text: None)
    with pytest.raises(NotImplementedError, match="take MultiSlotDataGenerator"):
        written(giving([("a", [1])], base=DataGenerator))


SCRIPT = """
from psrt.fluid.incubate.data_generator import MultiSlotDataGenerator


class Words(MultiSlotDataGenerator):
    def generate_sample(self, line):
        def samples():
            label, *words = line.split()
            yield [("label", [int(label)]), ("words", [len(word) for word in words])]

        return samples


Words().run_from_stdin()
"""


def test_a_script_is_the_pipe_command_of_a_dataset(tmp_path: Path) -> None:
    (tmp_path / "words.py").write_text(SCRIPT)
    (tmp_path / "good").write_text("1 the cat\n0 sat\n")
    (tmp_path / "bad").write_text("1 the cat\nno\n")
    dataset = psrt.QueueDataset([Slot("label", "uint64", 1), Slot("words", "uint64")])
    dataset.set_batch_size(4)
    dataset.set_pipe_command(f"{sys.executable} {tmp_path / 'words.py'}")

    dataset.set_filelist([tmp_path / "good"])
    (batch,) = dataset.batches()
    dataset.set_filelist([tmp_path / "bad"])
    with pytest.raises(DataError, match="Words was at line 2 'no'"):
        list(dataset.batches())

    label, words = batch["label"], batch["words"]
    assert np.asarray(label).tolist() == [[1], [0]]
    assert isinstance(words, Ragged)
    assert words.values.tolist() == [3, 3, 3]
