"""`psrt checkpoint` on chains of cuts: bases shown, kept and verified; a chain merged into one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from psrt.cli import main
from psrt.pserver.checkpoints import complete_cuts, find_cut
from psrt.storage.local_directory import LocalDirectory
from tests.support.chains import ChainedPservers, all_state, registered, specs_of
from tests.support.frozen import BASE, pushes_of

Capture = pytest.CaptureFixture[str]
SPECS = specs_of(BASE)


@pytest.fixture
def job(tmp_path: Path) -> ChainedPservers:
    """A job that has ended, with cuts 1 to 5: two chains of three and two."""
    job = ChainedPservers(LocalDirectory(tmp_path), SPECS, full_every=3)
    for number, push in enumerate(pushes_of(1, 5)):
        job.push(push)
        if number:
            job.drop(push.ids[:5])
        job.cut()
    job.close()
    return job


def sizes(folder: Path) -> list[int]:
    """Bytes of the array files of each cut."""
    return [
        sum(path.stat().st_size for path in cut.rglob("*.arrays"))
        for cut in sorted(folder.glob("cut-*"))
    ]


def restored(folder: Path, number: int) -> object:
    cut = find_cut(LocalDirectory(folder), str(number))
    return all_state([registered(each, cut) for each in SPECS])


def test_the_list_names_the_base_of_each_cut_and_its_own_size(
    job: ChainedPservers, tmp_path: Path, capsys: Capture
) -> None:
    assert main.run(["checkpoint", "list", str(tmp_path)]) == 0

    heads, *rows = (line.split() for line in capsys.readouterr().out.splitlines())
    assert heads[-3:] == ["base", "files", "MB"]
    assert [row[-3] for row in rows] == ["-", "1", "2", "-", "4"]
    assert [row[-1] for row in rows] == [f"{size / 1e6:,.1f}" for size in sizes(tmp_path)]


def test_an_incremental_cut_is_shown_with_its_base_and_both_sizes(
    job: ChainedPservers, tmp_path: Path, capsys: Capture
) -> None:
    own = sizes(tmp_path)
    main.run(["checkpoint", "show", str(tmp_path), "3"])
    shown = capsys.readouterr().out
    main.run(["checkpoint", "show", str(tmp_path), "3", "--json"])
    plain = json.loads(capsys.readouterr().out)

    assert f"continues cut 2, {own[2]:,} bytes; {sum(own[:3]):,} with it\n" in shown
    assert (plain["bases"], plain["bytes"], plain["bytes_with_bases"]) == (
        [2],
        own[2],
        sum(own[:3]),
    )


def test_verify_reads_the_files_of_the_whole_chain(
    job: ChainedPservers, tmp_path: Path, capsys: Capture
) -> None:
    own = sizes(tmp_path)
    assert main.run(["checkpoint", "verify", str(tmp_path), "all"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"cut 1: whole, 4 files, {own[0]:,} bytes",
        f"cut 2: whole, 8 files, {sum(own[:2]):,} bytes",
        f"cut 3: whole, 12 files, {sum(own[:3]):,} bytes",
        f"cut 4: whole, 4 files, {own[3]:,} bytes",
        f"cut 5: whole, 8 files, {sum(own[3:]):,} bytes",
    ]

    damaged = tmp_path / "cut-00000002" / "part-1" / "table-0.arrays"
    damaged.write_bytes(damaged.read_bytes()[:-1])

    assert main.run(["checkpoint", "verify", str(tmp_path), "all"]) == 73
    output = capsys.readouterr()
    whole = [line.split(":")[0] for line in output.out.splitlines() if "whole" in line]
    assert whole == ["cut 1", "cut 4", "cut 5"]
    assert output.err.count("cut-00000002/part-1/table-0.arrays is damaged") == 2


def test_prune_keeps_what_a_kept_cut_builds_on(
    job: ChainedPservers, tmp_path: Path, capsys: Capture
) -> None:
    main.run(["checkpoint", "prune", str(tmp_path), "--keep", "1"])

    assert capsys.readouterr().out.splitlines() == [f"cut {n}: deleted" for n in (3, 2, 1)]
    assert complete_cuts(LocalDirectory(tmp_path)) == [4, 5]
    assert restored(tmp_path, 5) == job.states[5]


def test_prune_keeps_all_older_cuts_behind_a_damaged_manifest(
    job: ChainedPservers, tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "cut-00000005" / "manifest.json").write_text("torn")

    main.run(["checkpoint", "prune", str(tmp_path), "--keep", "1"])

    assert capsys.readouterr().out == "nothing to delete\n"


def test_compact_makes_a_cut_that_needs_no_other(
    job: ChainedPservers, tmp_path: Path, capsys: Capture
) -> None:
    before = sum(sizes(tmp_path)[:3])

    assert main.run(["checkpoint", "compact", str(tmp_path), "3"]) == 0

    after = sizes(tmp_path)[2]
    assert capsys.readouterr().out == (
        f"cut 3: full, {after:,} bytes; it continued cut 2, {before:,} bytes\n"
    )
    assert [restored(tmp_path, n) == job.states[n] for n in range(1, 6)] == [True] * 5
    main.run(["checkpoint", "compact", str(tmp_path), "3"])
    assert capsys.readouterr().out == f"cut 3 is full already, {after:,} bytes\n"


def test_after_compaction_prune_deletes_the_rest_of_the_chain(
    job: ChainedPservers, tmp_path: Path
) -> None:
    main.run(["checkpoint", "compact", str(tmp_path)])
    main.run(["checkpoint", "prune", str(tmp_path), "--keep", "1"])

    assert complete_cuts(LocalDirectory(tmp_path)) == [5]
    assert restored(tmp_path, 5) == job.states[5]


def test_compaction_shows_a_bar_on_a_terminal(
    job: ChainedPservers, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    main.run(["checkpoint", "compact", str(tmp_path)])

    assert "compacting" in capsys.readouterr().err


def test_a_missing_base_is_named(job: ChainedPservers, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "cut-00000001" / "manifest.json").unlink()

    assert main.run(["checkpoint", "verify", str(tmp_path), "3"]) == 74

    assert "cut-00000001/manifest.json does not exist" in capsys.readouterr().err
