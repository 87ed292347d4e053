"""`psrt data imikolov`, `movielens`, `avazu` and `synth-text` on tiny made-up samples."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from psrt.cli import main
from psrt.core.errors import ConfigError
from psrt.data.convert import avazu, movielens
from psrt.data.convert.imikolov import Windows
from psrt.data.convert.synthetic_text import PlantedText, sentences, surprise
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Batch, Slot, batch_rows

ONE_FILE = ("--files", "1")


def read(path: Path, slots: tuple[Slot, ...]) -> Batch:
    with QueueReader([path], slots, 1000) as batches:
        (batch,) = batches
    return batch


def run(*arguments: object) -> int:
    return main.run(["data", *map(str, arguments)])


# --- imikolov ---

TEXT = "the cat sat\nthe cat ran off\n"


def test_n_grams_and_their_vocabulary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.txt").write_text("the dog sat\n")
    out = tmp_path / "out"

    code = run(
        "imikolov", tmp_path / "a.txt", "--test", tmp_path / "b.txt", "--n", 3,
        "--min-count", 1, "--out", out, *ONE_FILE,
    )  # fmt: skip

    words = (out / "vocabulary.txt").read_text().split()
    trained = (out / "train-00000.txt").read_text().splitlines()
    tested = (out / "test-00000.txt").read_text().splitlines()
    assert code == 0
    assert words == ["<e>", "<s>", "cat", "the", "<unk>"]
    assert trained[:3] == ["1 1 1 3 1 2", "1 3 1 2 1 4", "1 2 1 4 1 0"]
    assert tested == ["1 1 1 3 1 4", "1 3 1 4 1 4", "1 4 1 4 1 0"]
    said = capsys.readouterr().out
    assert "slots: w0 (1 id), w1 (1 id), next (1 id)" in said
    assert f"5 words, in {out}/vocabulary.txt" in said


def test_pairs_of_words_in_a_window(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x y\n")

    arguments = ("--window", 2, "--min-count", 0, "--test-fraction", 0)
    code = run("imikolov", tmp_path / "a.txt", *arguments, "--out", tmp_path / "out", *ONE_FILE)

    # <e> 0, <s> 1, x 2, y 3; the sentence is 1 2 3 0
    batch = read(tmp_path / "out" / "train-00000.txt", Windows(window=2).slots)
    pairs = np.column_stack([np.asarray(batch["center"]), np.asarray(batch["context"])]).tolist()
    assert code == 0
    near = [[1, 2], [1, 3], [2, 1], [2, 3], [2, 0], [3, 1], [3, 2], [3, 0], [0, 2], [0, 3]]
    assert pairs == near


def test_windows_and_texts_that_make_no_sense_are_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").write_text("\n")

    assert run("imikolov", tmp_path / "empty", "--out", tmp_path / "out") == 20
    assert run("imikolov", "x", "--n", 3, "--window", 2, "--out", tmp_path / "out") == 2
    with pytest.raises(ConfigError, match="n is 2 or more"):
        Windows(n=1)


# --- movielens ---

USERS = "1::F::1::10::48067\n2::M::56::16::70072\n"
MOVIES = "7::Café (The) Noir (1995)::Drama|Crime\n9::Café (1996)::Crime\n"
RATINGS = "1::7::5::978300760\n2::9::3::978302109\n2::7::4::978302110\n"


def write_movielens(directory: Path, **changed: str) -> Path:
    texts = {"users": USERS, "movies": MOVIES, "ratings": RATINGS} | changed
    for name, text in texts.items():
        (directory / f"{name}.dat").write_bytes(text.encode("latin-1"))
    return directory


def test_a_rating_has_what_is_known_of_its_user_and_film(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_movielens(tmp_path)

    code = run("movielens", tmp_path, "--out", tmp_path / "out", "--test-fraction", 0, *ONE_FILE)

    assert code == 0
    assert (tmp_path / "out" / "train-00000.txt").read_text().splitlines() == [
        "1 5 1 1 1 0 1 0 1 10 1 7 2 0 1 3 0 1 2",
        "1 3 1 2 1 1 1 6 1 16 1 9 1 1 1 0",
        "1 4 1 2 1 1 1 6 1 16 1 7 2 0 1 3 0 1 2",
    ]
    assert batch_rows(read(tmp_path / "out" / "train-00000.txt", movielens.SLOTS)) == 3
    assert "3 rows, 66.7 % rated 4 or more" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ratings": "1::7::5\n"}, "ratings.dat, line 1: expected 4 fields, found 3"),
        ({"ratings": "1::7::x::1\n"}, "line 1, Rating: expected a number of digits, found 'x'"),
        ({"ratings": "3::7::5::1\n"}, "ratings.dat, line 1: user '3' is in no other file"),
        ({"users": "1::X::1::10::4\n"}, "users.dat, line 1: gender 'X' or age 1 is none"),
    ],
)
def test_a_malformed_movielens_file_is_refused_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, str], message: str
) -> None:
    write_movielens(tmp_path, **changed)

    assert run("movielens", tmp_path, "--out", tmp_path / "out") == 20
    assert message in capsys.readouterr().err
    assert list((tmp_path / "out").glob("*")) == []


# --- avazu ---

HEADER = ",".join(avazu.COLUMNS)


def avazu_row(click: int, hour: str = "14102100", c14: str = "15706") -> str:
    fields = dict.fromkeys(avazu.COLUMNS, "1fbe01fe")
    return ",".join((fields | {"click": str(click), "hour": hour, "C14": c14}).values())


def test_a_row_of_avazu_has_an_id_for_each_column(tmp_path: Path) -> None:
    table = [HEADER, avazu_row(0), avazu_row(1, "14102123", "8")]
    (tmp_path / "train.csv").write_text("\r\n".join(table))

    code = run(
        "avazu", tmp_path / "train.csv", "--out", tmp_path / "out", "--test-fraction", 0, *ONE_FILE
    )

    batch = read(tmp_path / "out" / "train-00000.txt", avazu.SLOTS)
    ids = np.column_stack([np.asarray(batch[slot.name]) for slot in avazu.SLOTS[2:]])
    assert code == 0
    assert np.asarray(batch["click"]).tolist() == [[0.0], [1.0]]
    assert np.asarray(batch["hour_of_day"]).tolist() == [[0], [23]]
    assert len(set(ids[0].tolist())) == len(avazu.HASHED) == 21
    same = [
        slot.name for slot, equal in zip(avazu.SLOTS[2:], ids[0] == ids[1], strict=True) if equal
    ]
    assert same == [name for name in avazu.HASHED if name != "C14"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (["id,hour"], "line 1: this is not the header"),
        ([HEADER, "1,0"], "line 2: expected 24 fields, found 2"),
        ([HEADER, avazu_row(2)], "line 2: expected click 0 or 1"),
        ([HEADER, avazu_row(1, "14102124")], "hour YYMMDDHH, found '1', '14102124'"),
    ],
)
def test_a_malformed_table_of_avazu_is_refused_by_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], table: list[str], message: str
) -> None:
    (tmp_path / "train.csv").write_text("\n".join(table))

    assert run("avazu", tmp_path / "train.csv", "--out", tmp_path / "out") == 20
    assert message in capsys.readouterr().err


# --- synth-text ---


def test_synthetic_text_is_read_by_imikolov(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "text"
    sizes = ("--sentences", 30, "--test-sentences", 10, "--words", 8, "--length", 5)

    code = run("synth-text", "--out", out, *sizes, *ONE_FILE)
    again = run("imikolov", out / "train-00000.txt", "--out", tmp_path / "n", "--min-count", 0)

    said = capsys.readouterr().out
    assert (code, again) == (0, 0)
    assert "train: 30 sentences of 5 words" in said
    assert "best possible test perplexity" in said
    tests = (out / "test-00000.txt").read_text().splitlines()
    assert [len(line.split()) for line in tests] == [5] * 10


@pytest.mark.parametrize(
    ("bond", "expected"),
    [(0.0, lambda z: float(-(z * np.log(z)).sum())), (0.999999, lambda z: 0.0)],
)
def test_the_surprise_of_a_planted_text_is_its_entropy(
    bond: float, expected: Callable[[np.ndarray], float]
) -> None:
    planted = PlantedText(1, 1, words=50, length=41, bond=bond)

    text = sentences(planted, np.random.default_rng(5), 500)

    assert surprise(planted, text) / (500 * 40) == pytest.approx(
        expected(planted.frequencies()), abs=0.03
    )


def test_a_planted_text_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="word"):
        PlantedText(1, 1, words=0)
    with pytest.raises(ConfigError, match="bond"):
        PlantedText(1, 1, bond=1.0)
