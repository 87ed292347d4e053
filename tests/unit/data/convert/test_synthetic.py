"""The planted model: what it promises about its own rows."""

from __future__ import annotations

import json

import numpy as np
import pytest

from psrt.core.errors import ConfigError
from psrt.data.convert.criteo import slots
from psrt.data.convert.sharded import Destination
from psrt.data.convert.synthetic import Planted, PlantedModel, auc, generate
from psrt.data.reading.queue import QueueReader

SMALL = Planted(rows=3000, test_rows=2000, seed=5, ids_per_slot=40)


def texts(directory) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_the_same_settings_give_the_same_files(tmp_path):
    generate(SMALL, Destination(tmp_path / "a"))
    generate(SMALL, Destination(tmp_path / "b"))

    assert texts(tmp_path / "a") == texts(tmp_path / "b")


def test_another_seed_gives_other_rows(tmp_path):
    generate(SMALL, Destination(tmp_path / "a"))
    generate(Planted(3000, 2000, 6, 40), Destination(tmp_path / "b"))

    assert texts(tmp_path / "a")["train-00000.txt"] != texts(tmp_path / "b")["train-00000.txt"]


def test_written_rows_are_criteo_shaped(tmp_path):
    writer, report = generate(SMALL, Destination(tmp_path, files=3))

    with QueueReader(writer.paths("train"), slots(), 5000) as reader:
        [batch] = reader

    assert batch["dense_input"].shape == (3000, 13)
    assert batch["C26"].shape == (3000, 1)
    assert set(np.unique(batch["click"])) == {0, 1}
    assert batch["click"].mean() == pytest.approx(report.click_rate)
    assert 0.2 < report.click_rate < 0.3


def test_no_slot_shares_an_id_with_another_and_sizes_are_kept(tmp_path):
    ids = PlantedModel(SMALL).chunk(0, 0, 20_000).rows.ids

    by_slot = [set(ids[:, slot].tolist()) for slot in range(26)]
    assert len(set.union(*by_slot)) == sum(map(len, by_slot))
    assert len(by_slot[0]) == 10
    assert len(by_slot[25]) <= 40


def test_the_report_tells_the_auc_of_the_true_probabilities(tmp_path):
    writer, report = generate(SMALL, Destination(tmp_path, files=1))
    saved = json.loads((tmp_path / "planted.json").read_text())
    chunk = PlantedModel(SMALL).chunk(2, 0, 2000)
    written = [line.split()[1] for line in writer.paths("test")[0].read_text().splitlines()]

    positive = chunk.probabilities[np.array(written) == "1"]
    negative = chunk.probabilities[np.array(written) == "0"]
    pairs = (positive[:, None] > negative[None, :]).mean()

    assert report.best_auc == pytest.approx(pairs)
    assert saved["best_auc"] == report.best_auc
    assert saved["planted"]["seed"] == 5


def test_auc_counts_ties_one_half():
    labels = np.array([1, 0, 1, 0], np.uint8)

    assert auc(np.array([0.9, 0.1, 0.8, 0.2]), labels) == 1.0
    assert auc(np.array([0.5, 0.5, 0.5, 0.5]), labels) == 0.5
    assert auc(np.array([0.1, 0.9, 0.5, 0.5]), labels) == 0.125


def test_true_probabilities_are_calibrated():
    chunk = PlantedModel(Planted()).chunk(1, 0, 50_000)

    tens = np.digitize(chunk.probabilities, np.linspace(0, 1, 11)[1:-1])
    gaps = [
        chunk.probabilities[tens == k].mean() - chunk.rows.labels[tens == k].mean()
        for k in range(10)
    ]
    assert max(map(abs, gaps)) < 0.03


@pytest.mark.parametrize(
    "settings", [{"rows": 0}, {"test_rows": 0}, {"ids_per_slot": 3}, {"seed": -1}, {"skew": -1.0}]
)
def test_impossible_settings_are_refused(settings):
    with pytest.raises(ConfigError):
        Planted(**settings)
