"""`psrt data split`, `stat` and `check` as a user types them."""

from __future__ import annotations

import gzip
import importlib.util
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from psrt.cli import main
from psrt.core.errors import ConfigError, DataError
from psrt.data.convert import file_parts
from psrt.data.convert.file_parts import part_sizes, split_file
from psrt.data.inspect.skew_plot import points
from psrt.data.inspect.statistics import IdCounts
from psrt.data.sources.sources import blocks

SLOTS = ("--slots", "click:float:1,dense:float:2,ids:uint64")
GOOD = "1 1 2 0.5 2 2 7 8\n1 0 2 -1 0.25 0\n1 0 2 1 3 1 7\n"


def lines(n: int) -> str:
    return "".join(f"1 {i}\n" for i in range(n))


# --- split ---


@pytest.mark.parametrize("gzipped", [False, True])
def test_parts_are_consecutive_lines_and_together_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gzipped: bool
) -> None:
    (tmp_path / "clicks.txt.gz").write_bytes(gzip.compress(lines(10).encode()))
    out = tmp_path / "parts"
    zipped = ["--gzip"] if gzipped else []

    code = main.run(
        ["data", "split", str(tmp_path / "clicks.txt.gz"), "-n", "3", "--out", str(out), *zipped]
    )

    ending = ".txt.gz" if gzipped else ".txt"
    parts = [out / f"clicks-0000{i}{ending}" for i in range(3)]
    texts = [b"".join(text.tobytes() for text in blocks(path)).decode() for path in parts]
    assert code == 0
    assert sorted(out.iterdir()) == parts
    assert "".join(texts) == lines(10)
    assert [text.count("\n") for text in texts] == [4, 3, 3]
    assert f"{parts[0]}: 4 lines" in capsys.readouterr().out


def test_parts_span_blocks_and_a_last_line_gets_its_newline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_parts, "blocks", partial(blocks, block_bytes=64))
    (tmp_path / "a").write_text(lines(1000)[:-1])

    written = split_file(tmp_path / "a", 7, tmp_path / "out")

    assert [size for _, size in written] == part_sizes(1000, 7, "a")
    assert "".join(path.read_text() for path, _ in written) == lines(1000)


CSV = "label,site,price\n" + "".join(f"{i % 2},a{i},{i}.5\n" for i in range(7))


@pytest.mark.parametrize("gzipped", [False, True])
def test_each_part_of_a_table_has_the_header(tmp_path: Path, gzipped: bool) -> None:
    (tmp_path / "a.csv").write_text(CSV)

    written = split_file(tmp_path / "a.csv", 3, tmp_path / "out", gzipped, header=True)

    texts = ["".join(t.tobytes().decode() for t in blocks(path)) for path, _ in written]
    head, *rows = CSV.splitlines(keepends=True)
    assert [text.splitlines(keepends=True)[0] for text in texts] == [head] * 3
    assert "".join(text.removeprefix(head) for text in texts) == "".join(rows)
    assert [lines for _, lines in written] == [4, 3, 3]


def test_a_header_that_one_part_would_get_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_text(CSV)
    words = ["data", "split", str(tmp_path / "a.csv"), "-n", "2", "--out", str(tmp_path / "out")]

    code = main.run(words)

    told = capsys.readouterr().err
    assert code == 20
    assert "a.csv, line 1: 'label,site,price' looks like the names of columns" in told
    assert "Give --header to begin each part with it" in told
    assert not (tmp_path / "out").exists()
    assert main.run([*words, "--no-header"]) == 0


def test_a_split_does_not_mix_with_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(lines(5))
    split_file(tmp_path / "a.txt", 4, tmp_path / "out")

    with pytest.raises(DataError, match=r"a-00000\.txt is there already"):
        split_file(tmp_path / "a.txt", 2, tmp_path / "out")
    split_file(tmp_path / "a.txt", 2, tmp_path / "out", replace=True)

    assert len(list((tmp_path / "out").iterdir())) == 2


def test_fewer_lines_than_parts_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(lines(2))

    with pytest.raises(DataError, match="has 2 lines, too few for 3 parts"):
        split_file(tmp_path / "a.txt", 3, tmp_path / "out")
    with pytest.raises(ConfigError, match="1 part or more"):
        split_file(tmp_path / "a.txt", 0, tmp_path / "out")

    assert not (tmp_path / "out").exists()


# --- check ---


def test_files_without_errors_pass(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "good").write_text(GOOD)

    code = main.run(["data", "check", str(tmp_path / "good"), *SLOTS])

    assert code == 0
    assert "3 examples are well formed; 0 errors in 0 of 1 file" in capsys.readouterr().out


def test_all_errors_are_found_with_file_line_and_slot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = ["1 x 2 1 1 0", "1 1 3 1 1 1 0", "1 1 2 1 1 2 5", "1 1 2 1 1 1 5 9"]
    good = GOOD.splitlines()
    mixed = [good[0], bad[0], bad[1], good[1], bad[2], good[2], bad[3]]
    (tmp_path / "mixed").write_text("\n".join(mixed))
    (tmp_path / "good").write_text(GOOD)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GOOD.encode())[:-9])

    paths = [str(tmp_path / name) for name in ("mixed", "good", "cut.gz")]
    code = main.run(["data", "check", *paths, *SLOTS])

    said = capsys.readouterr().out.splitlines()
    assert code == 1
    for line, slot, found in zip((2, 3, 5), ("click", "dense", "ids"), said, strict=False):
        assert found.startswith(f"{paths[0]}, line {line}, column ")
        assert f"slot '{slot}'" in found
    assert "line 7" in said[3]
    assert "behind the last slot 'ids'" in said[3]
    assert "cut.gz" in said[4]
    assert said[-1].startswith("6 examples are well formed; 5 errors in 2 of 3 files")


def test_twenty_errors_are_shown_and_the_rest_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = "9" * 5000
    (tmp_path / "bad").write_text(f"1 1 2 1 1 {wide}\n" * 1500 + GOOD)

    code = main.run(["data", "check", str(tmp_path / "bad"), *SLOTS])

    said = capsys.readouterr().out.splitlines()
    assert code == 1
    assert sum("line" in line for line in said) == 20
    assert said[-2] == "… and 1,480 more errors"
    assert said[-1].startswith("3 examples are well formed; 1,500 errors")


def test_how_files_are_read_is_to_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["data", "check", "x"]) == 2
    assert "--job JOB.toml or by --slots" in capsys.readouterr().err
    assert main.run(["data", "check", "x", "--slots", "a:int"]) == 2
    assert "'a:int' is not NAME:DTYPE" in capsys.readouterr().err


PROGRAM = """
import psrt
from psrt import layers

def build():
    click, dense = layers.data("click", (1,)), layers.data("dense", (2,))
    loss = layers.mean(layers.square_error_cost(layers.fc(dense, 1), click))
    return psrt.Model(loss, optimizer=psrt.optimizer.Sgd(0.1))
"""
JOB = """
[job]
name = "clicks"
program = "program.py"
[data]
format = "csv"
[data.columns]
click = "click"
dense = ["x", "y"]
"""


def test_a_job_says_how_its_files_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    (tmp_path / "job.toml").write_text(JOB)
    (tmp_path / "a.csv").write_text("click,x,y\n1,0.5,2\n0,1,4\n")
    (tmp_path / "b.csv").write_text("click,x,y\n1,0.5,2\n0,z,4\n")
    files = [str(tmp_path / name) for name in ("a.csv", "b.csv")]
    job = ("--job", str(tmp_path / "job.toml"))

    assert main.run(["data", "check", *files, *job]) == 1
    said = capsys.readouterr().out.splitlines()
    assert "b.csv, line 3" in said[0]
    assert said[-1].endswith("1 error in 1 of 2 files")
    assert main.run(["data", "stat", files[0], *job]) == 0
    assert "label click: 50.00 % are not 0" in capsys.readouterr().out


# --- stat ---


def test_statistics_of_a_file_slot_by_slot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good").write_text(GOOD)

    code = main.run(["data", "stat", str(tmp_path / "good"), *SLOTS])

    said = capsys.readouterr().out.splitlines()
    assert code == 0
    assert said[:2] == ["3 examples in 1 files", "label click: 33.33 % are not 0"]
    assert [" ".join(line.split()) for line in said[3:6]] == [
        "click 1.00 0.00 % 0 … 0.3333 … 1",
        "dense 2.00 0.00 % -1 … 0.9583 … 3",
        "ids 1.00 (up to 2) 33.33 % 2 66.7 %",
    ]
    assert said[7] == "how often an id of ids occurs:"
    assert said[8].split()[:4] == ["1", "times", "1", "ids"]
    assert said[9].split()[:6] == ["2", "…", "3", "times", "1", "ids"]


def test_a_slot_that_is_not_there_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good").write_text(GOOD)

    assert main.run(["data", "stat", str(tmp_path / "good"), *SLOTS, "--label", "clik"]) == 2
    assert "no slot 'clik'" in capsys.readouterr().err


def test_the_skew_is_drawn_if_there_is_matplotlib(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "good").write_text(GOOD)
    there = importlib.util.find_spec("matplotlib") is not None
    drawing = tmp_path / "skew.png"

    code = main.run(["data", "stat", str(tmp_path / "good"), *SLOTS, "--png", str(drawing)])

    said = capsys.readouterr()
    assert code == (0 if there else 2)
    assert there or "psrt-cluster[plot]" in said.err
    assert drawing.exists() == there
    assert not there or drawing.read_bytes().startswith(b"\x89PNG")


def test_ranks_are_thinned_out_but_keep_both_ends() -> None:
    ranks, occurrences = points(np.arange(1, 100_001))

    assert (ranks[0], occurrences[0]) == (1, 100_000)
    assert (ranks[-1], occurrences[-1]) == (100_000, 1)
    assert np.array_equal(occurrences, 100_001 - ranks)
    assert len(ranks) <= 2000


def test_ids_are_counted_exactly_up_to_the_limit_and_estimated_beyond() -> None:
    draw = np.random.default_rng(1)
    ids = draw.zipf(1.3, 200_000).astype(np.int64)
    distinct, counts = np.unique(ids, return_counts=True)
    top = np.sort(counts)[::-1][: -(-len(distinct) // 100)].sum() / len(ids)
    exact, sampled = IdCounts(10**6), IdCounts(2000)

    for part in np.array_split(ids, 7):
        exact.add(part)
        sampled.add(part)

    assert (exact.distinct, exact.sampled) == (len(distinct), 1)
    assert exact.top_share() == pytest.approx(top)
    assert sum(exact.histogram()) == len(distinct)
    assert sampled.sampled > 1
    assert len(sampled.counts()) <= 2000
    assert sampled.distinct == pytest.approx(len(distinct), rel=0.1)
