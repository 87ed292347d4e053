"""The clicks of `benchmarks.torch_accuracy`, and what it calls near."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

from benchmarks.torch_accuracy import clicks
from benchmarks.torch_accuracy.__main__ import _judged
from tests.house import ROOT

SAMPLE = ROOT / "examples" / "criteo" / "sample.tsv"


def test_a_table_becomes_arrays_plain_or_compressed(tmp_path: Path) -> None:
    packed = tmp_path / "sample.tsv.gz"
    packed.write_bytes(gzip.compress(SAMPLE.read_bytes()))

    plain, unpacked = clicks.read(SAMPLE), clicks.read(packed, most=30)

    lines = [line.split("\t") for line in SAMPLE.read_text().splitlines()]
    assert plain.ids.shape == (len(lines), clicks.CATEGORIES)
    assert plain.ids.min() == 0
    assert len(np.unique(plain.ids)) == plain.ids.max() + 1
    assert plain.click[:, 0].tolist() == [float(line[0]) for line in lines]
    third = float(lines[2][1] or 0)
    np.testing.assert_allclose(plain.numbers[2, 0], np.sign(third) * np.log1p(abs(third)), 1e-6)
    assert unpacked.rows == 30
    np.testing.assert_array_equal(unpacked.numbers, plain.numbers[:30])


def test_equal_texts_of_two_columns_are_two_ids() -> None:
    found = clicks.read(SAMPLE)

    owners = {(int(each), slot) for row in found.ids for slot, each in enumerate(row)}

    assert len(owners) == len({each for each, _ in owners})


def test_a_tenth_is_set_aside_and_comes_back_from_a_file(tmp_path: Path) -> None:
    whole = clicks.read(SAMPLE)
    clicks.save(whole, tmp_path / "clicks.npz")

    train, test = clicks.set_aside(clicks.load(tmp_path / "clicks.npz"))

    assert (train.rows, test.rows) == (whole.rows * 9 // 10, whole.rows // 10)
    again = clicks.set_aside(whole)[1]
    np.testing.assert_array_equal(test.ids, again.ids)


def test_a_mean_beyond_the_claimed_distance_is_no_claim_kept() -> None:
    means = {"torch": 0.7600, "sync": 0.7579, "async": 0.7555}

    assert _judged("sync", means) == {"mean": 0.7579, "minus_torch": -0.0021, "as_claimed": False}
    assert _judged("async", means)["as_claimed"]
    assert _judged("torch", means) == {"mean": 0.76}
