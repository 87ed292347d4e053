"""Programs that import paddle run as they stand: `python -m psrt.fluid`, `install_as_paddle`."""

from __future__ import annotations

import gzip
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import DataError
from psrt.fluid.paddle import compat
from psrt.fluid.paddle.dataset import common, imikolov, mnist, uci_housing

SCRIPT = """
import sys

import paddle
import paddle.compat as cpt
import paddle.fluid as fluid
import paddle.fluid.layers.nn as nn
import paddle.fluid.unique_name
import paddle.version
from paddle.fluid.incubate.fleet.base import role_maker
from paddle.fluid.transpiler.distribute_transpiler import ServerRuntimeConfig
from paddle.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler
from paddle.reader.decorator import firstn

import psrt.fluid
from beside import NAME

assert fluid is psrt.fluid
assert nn.fc is fluid.layers.fc
assert [len(b) for b in paddle.batch(lambda: range(5), 2)()] == [2, 2, 1]
assert paddle.reader.firstn is not None
assert cpt.to_text(b"word") == "word"
assert firstn is paddle.reader.firstn
assert paddle.version.full_version == paddle.__version__
for name, hint in (
    ("paddle.distributed.launch", "psrt launch"),
    ("paddle.fluid.debugger", "tools around training"),
    ("paddle.fluid.transpiler.details", "ops of a transpiled program"),
):
    try:
        __import__(name)
    except ModuleNotFoundError as error:
        assert hint in str(error), error
    else:
        raise AssertionError(name)
print(NAME, sys.argv[1:], __name__)
"""


def test_a_script_runs_with_its_arguments_and_the_modules_beside_it(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text('NAME = "beside"\n')
    (tmp_path / "script.py").write_text(SCRIPT)

    ran = subprocess.run(
        [sys.executable, "-m", "psrt.fluid", str(tmp_path / "script.py"), "--epochs", "1"],
        capture_output=True,
        text=True,
        timeout=120,
    )

    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "beside ['--epochs', '1'] __main__\n"


def test_without_a_script_the_usage_is_shown() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "psrt.fluid"], capture_output=True, text=True, timeout=120
    )

    assert ran.returncode == 2
    assert ran.stderr.startswith("usage: python -m psrt.fluid SCRIPT")


def test_another_paddle_stays_where_it_is() -> None:
    script = (
        "import sys, types; sys.modules['paddle'] = types.ModuleType('paddle')\n"
        "import psrt.fluid; psrt.fluid.install_as_paddle()"
    )

    ran = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )

    assert ran.returncode == 1
    assert "another paddle was imported" in ran.stderr


def test_texts_are_converted_in_lists_and_in_place() -> None:
    words = [b"a", "b"]

    assert compat.to_text(words) == ["a", "b"]
    compat.to_bytes(words, inplace=True)
    assert words == [b"a", b"b"]
    assert compat.to_bytes({"c"}) == {b"c"}
    assert (compat.round(2.5), compat.round(-0.125, 2), compat.floor_division(7, 2)) == (
        3,
        -0.13,
        3,
    )
    assert compat.get_exception_message(ValueError("why")) == "why"


# --- data sets ---


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    for name in ("uci_housing", "mnist", "imikolov"):
        (tmp_path / name).mkdir()
    return tmp_path


def test_a_file_that_is_missing_is_named_with_where_it_is_from(home: Path) -> None:
    with pytest.raises(DataError, match=r"mnist/t10k-images-idx3-ubyte\.gz is missing") as missing:
        next(mnist.test()())

    assert mnist.URL in missing.value.hint


def test_districts_are_normalised_and_split(home: Path) -> None:
    rows = np.random.default_rng(1).random((10, 14))
    np.savetxt(home / "uci_housing" / "housing.data", rows)

    trained, tested = list(uci_housing.train()()), list(uci_housing.test()())

    assert (len(trained), len(tested)) == (8, 2)
    numbers = np.array([x for x, _ in trained + tested])
    expected = (rows - rows.mean(0)) / (rows.max(0) - rows.min(0))
    np.testing.assert_allclose(numbers, expected[:, :-1])
    np.testing.assert_allclose([y[0] for _, y in trained + tested], rows[:, -1])


def test_images_are_numbers_from_minus_one_to_one(home: Path) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (3, 784), dtype=np.uint8)
    with gzip.open(home / "mnist" / "train-images-idx3-ubyte.gz", "wb") as file:
        file.write(bytes(16) + pixels.tobytes())
    with gzip.open(home / "mnist" / "train-labels-idx1-ubyte.gz", "wb") as file:
        file.write(bytes(8) + bytes([7, 0, 9]))

    found = list(mnist.train()())

    assert [label for _, label in found] == [7, 0, 9]
    np.testing.assert_allclose([image for image, _ in found], pixels / 127.5 - 1, atol=1e-6)


def test_words_are_numbered_by_frequency_and_read_as_n_grams(home: Path) -> None:
    folder = home / "simple-examples" / "data"
    folder.mkdir(parents=True)
    (folder / "ptb.train.txt").write_text("b a b\n")
    (folder / "ptb.valid.txt").write_text("b <unk>\n")
    with tarfile.open(home / "imikolov" / "simple-examples.tgz", "w:gz") as archive:
        archive.add(home / "simple-examples", "./simple-examples")

    words = imikolov.build_dict(min_word_freq=1)

    assert words == {"b": 0, "<e>": 1, "<s>": 2, "<unk>": 3}
    assert list(imikolov.train(words, 3)()) == [(2, 0, 3), (0, 3, 0), (3, 0, 1)]
    assert list(imikolov.test(words, 0, imikolov.DataType.SEQ)()) == [([2, 0, 3], [0, 3, 1])]
