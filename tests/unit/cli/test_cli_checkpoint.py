"""`psrt checkpoint` as a user types it: cuts listed, shown, verified, made and deleted."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from psrt.cli import main
from psrt.cli.checkpoint import checkpoint, contents
from psrt.core.specs import Async, to_json
from psrt.pserver.checkpoints import Settings, complete_cuts, files_by_cut, find_cut
from psrt.pserver.serving.service import PserverService
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.server import Server
from psrt.storage.local_directory import LocalDirectory
from psrt.storage.locate import directory_at
from tests.support.cuts import write_cuts
from tests.support.inproc import InprocServer

WAIT_S = 30.0
Capture = pytest.CaptureFixture[str]


@pytest.fixture
def three(tmp_path: Path) -> Path:
    """A directory with cuts 1 to 3."""
    write_cuts(LocalDirectory(tmp_path), 3)
    return tmp_path


def lines(capsys: Capture) -> list[list[str]]:
    """The words of each line of the standard output."""
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def damage(path: Path) -> None:
    """Change one bit in the middle of a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def flat(text: str) -> str:
    return " ".join(text.split())


# --- list -----------------------------------------------------------------------------------------


def test_cuts_are_listed_with_their_facts_and_an_incomplete_one_as_such(
    three: Path, capsys: Capture
) -> None:
    (three / "cut-00000002" / "manifest.json").unlink()

    assert main.run(["checkpoint", "list", str(three)]) == 0

    heads, first, second, third = lines(capsys)
    written = find_cut(LocalDirectory(three), "1").manifest["written"].replace("+00:00", "Z")
    assert heads[:4] == ["cut", "state", "written", "at"]
    assert first == ["1", "complete", written, "round", "20", "Sync", "2", "2", "-", "7", "0.0"]
    assert second == ["2", "incomplete", *"------", "6", "-"]
    assert third[:2] == ["3", "complete"]


def test_a_cut_in_a_mode_without_rounds_is_listed_by_its_mini_batches(
    tmp_path: Path, capsys: Capture
) -> None:
    write_cuts(LocalDirectory(tmp_path), 1, Async())

    main.run(["checkpoint", "list", str(tmp_path)])

    assert lines(capsys)[1][3:6] == ["step", "4,000", "Async"]


def test_a_cut_with_a_damaged_manifest_does_not_hide_the_others(
    three: Path, capsys: Capture
) -> None:
    damage(three / "cut-00000001" / "manifest.json")

    assert main.run(["checkpoint", "list", str(three)]) == 0

    output = capsys.readouterr()
    assert "cut-00000001/manifest.json is damaged" in output.err
    assert [line.split()[1] for line in output.out.splitlines()[1:]] == [
        *("damaged", "complete", "complete")
    ]


def test_a_directory_without_cuts_is_no_error(tmp_path: Path, capsys: Capture) -> None:
    assert main.run(["checkpoint", "list", str(tmp_path / "none")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'none'} has no cuts.\n"


def test_cuts_behind_a_url_are_listed(capsys: Capture) -> None:
    pytest.importorskip("fsspec")
    write_cuts(directory_at("memory://cuts-of-a-listing"), 2)

    assert main.run(["checkpoint", "list", "memory://cuts-of-a-listing"]) == 0

    assert [words[:2] for words in lines(capsys)[1:]] == [["1", "complete"], ["2", "complete"]]


# --- show -----------------------------------------------------------------------------------------


def test_a_cut_is_shown_with_positions_tables_and_parts(three: Path, capsys: Capture) -> None:
    assert main.run(["checkpoint", "show", str(three), "2"]) == 0

    shown = flat(capsys.readouterr().out)
    assert shown.startswith("cut 2 of job clicks, written 20")
    assert "mode Sync (on_trainer_loss abort) round 40, 2 trainers, 2 pservers full, " in shown
    assert "0 epoch 2, 1,500 steps; train-0: 2,560 examples 1 completed" in shown
    assert "w dense 12 × 5 60 2 1 Adagrad" in shown
    assert "emb sparse ids × 5 14 2 1 Sgd" in shown
    assert "b:6170 cut-00000002/part-1/dense.arrays" in shown


def test_the_newest_cut_is_shown_by_default_and_as_json(three: Path, capsys: Capture) -> None:
    assert main.run(["checkpoint", "show", str(three), "--json"]) == 0

    shown = json.loads(capsys.readouterr().out)
    assert (shown["number"], shown["round"], shown["job"]["trainers"]) == (3, 60, 2)
    assert shown["positions"]["0"]["steps"] == 1500
    assert shown["positions"]["1"] == "completed"
    assert [(t["name"], t["kind"], t["size"], t["blocks"]) for t in shown["tables"]] == [
        *(("w", "dense", 60, 2), ("emb", "sparse", 14, 2))
    ]
    assert [len(part["files"]) for part in shown["parts"]] == [2, 2]


def test_positions_of_unknown_form_are_shown_as_they_are() -> None:
    assert contents.position_text("") == "took no part"
    assert "had not joined" in contents.position_text({"deal": {"positions": []}})
    assert contents.position_text("elsewhere") == "elsewhere"
    assert contents.position_text({"epoch": 3, "steps": 7}) == "epoch 3, 7 steps"


def test_a_cut_that_does_not_exist_is_wrong_usage_with_the_cuts_there_are(
    three: Path, capsys: Capture
) -> None:
    assert main.run(["checkpoint", "show", str(three), "9"]) == 2
    assert "no complete cut '9'; it has 1, 2, 3." in capsys.readouterr().err


# --- verify ---------------------------------------------------------------------------------------


def test_whole_cuts_are_verified(three: Path, capsys: Capture) -> None:
    assert main.run(["checkpoint", "verify", str(three), "all"]) == 0

    size = sum(path.stat().st_size for path in (three / "cut-00000001").rglob("*.arrays"))
    assert capsys.readouterr().out.splitlines() == [
        f"cut {number}: whole, 4 files, {size:,} bytes" for number in (1, 2, 3)
    ]


@pytest.mark.parametrize(
    "name", ["part-0/dense.arrays", "part-1/table-0.arrays", "part-1.json", "manifest.json"]
)
def test_a_changed_bit_is_found_and_its_file_named(three: Path, capsys: Capture, name: str) -> None:
    damage(three / "cut-00000002" / name)

    assert main.run(["checkpoint", "verify", str(three), "all"]) == 73

    output = capsys.readouterr()
    assert [line[:13].rstrip(" ,") for line in output.out.splitlines()].count("cut 2: damage") == 1
    assert output.out.count("whole") == 2
    assert f"cut-00000002/{name} is damaged" in output.err


def test_only_the_named_cut_is_read(three: Path) -> None:
    damage(three / "cut-00000002" / "part-0" / "dense.arrays")

    assert main.run(["checkpoint", "verify", str(three)]) == 0
    assert main.run(["checkpoint", "verify", str(three), "1"]) == 0
    assert main.run(["checkpoint", "verify", str(three), "2"]) == 73


def test_a_missing_file_is_named(three: Path, capsys: Capture) -> None:
    (three / "cut-00000003" / "part-1" / "table-0.arrays").unlink()

    assert main.run(["checkpoint", "verify", str(three)]) == 74
    assert "cut-00000003/part-1/table-0.arrays does not exist" in capsys.readouterr().err


def test_nothing_to_verify_is_wrong_usage(tmp_path: Path, capsys: Capture) -> None:
    assert main.run(["checkpoint", "verify", str(tmp_path), "all"]) == 2
    assert "has no complete cut" in capsys.readouterr().err


# --- prune ----------------------------------------------------------------------------------------


def test_old_cuts_are_deleted_and_milestones_kept(tmp_path: Path, capsys: Capture) -> None:
    directory = LocalDirectory(tmp_path)
    write_cuts(directory, 5)

    assert main.run(["checkpoint", "prune", str(tmp_path), "--keep", "1", "--keep-every", "2"]) == 0

    assert capsys.readouterr().out.splitlines() == ["cut 3: deleted", "cut 1: deleted"]
    assert complete_cuts(directory) == [*files_by_cut(directory)] == [2, 4, 5]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("coordinator.json", "cut-00000002", "cut-00000004", "cut-00000005")
    ]


def test_a_dry_run_deletes_nothing(three: Path, capsys: Capture) -> None:
    before = sorted(three.rglob("*"))

    main.run(["checkpoint", "prune", str(three), "--keep", "2", "--dry-run"])

    assert capsys.readouterr().out == "cut 1: to be deleted\n"
    assert sorted(three.rglob("*")) == before


def test_an_old_incomplete_cut_is_deleted_but_one_that_may_be_under_way_is_kept(
    three: Path, capsys: Capture
) -> None:
    (three / "cut-00000001" / "manifest.json").unlink()
    (three / "cut-00000003" / "manifest.json").unlink()

    main.run(["checkpoint", "prune", str(three), "--keep", "3"])

    assert capsys.readouterr().out == "cut 1: deleted\n"
    assert [*files_by_cut(LocalDirectory(three))] == [2, 3]


def test_there_may_be_nothing_to_delete(three: Path, capsys: Capture) -> None:
    main.run(["checkpoint", "prune", str(three), "--keep", "3"])

    assert capsys.readouterr().out == "nothing to delete\n"


# --- save -----------------------------------------------------------------------------------------


@dataclass
class Running:
    """A pserver with one connected trainer, and `psrt checkpoint save` in a thread."""

    service: PserverService
    endpoint: str
    trainer: Client
    codes: list[int] = field(default_factory=list)

    def save(self, between: Callable[[int], None]) -> int:
        """The exit code of the command; `between` gets the number of the proposed cut."""
        command = ["checkpoint", "save", "--endpoint", self.endpoint]
        saving = threading.Thread(target=lambda: self.codes.append(main.run(command)))
        saving.start()
        watch = pb.Header(cut=pb.Cut(number=0))
        between(self.trainer.call(Method.WATCH, header=watch, timeout_s=WAIT_S).header.cut.number)
        saving.join(WAIT_S)
        return self.codes[0]

    def take_part(self, number: int) -> None:
        cut = pb.Header(cut=pb.Cut(number=number))
        self.trainer.call(Method.CUT, header=cut, timeout_s=WAIT_S)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A job with six cuts behind it."""
    write_cuts(LocalDirectory(tmp_path), 6)
    with served(Settings(LocalDirectory(tmp_path))) as (service, server):
        hello = pb.Hello(job_id="j", plan_hash="p", trainers=1, mode=to_json(Async()))
        trainer = Client("inproc", 0, 7, InprocServer(service.handle), hello)
        found = trainer.connect(WAIT_S)
        process = pb.PserverProcess(endpoint=server.endpoint, incarnation=found.incarnation)
        register = pb.Header(register=pb.Register(pservers=[process]))
        trainer.call(Method.REGISTER, header=register, timeout_s=WAIT_S)
        yield Running(service, server.endpoint, trainer)


@contextmanager
def served(cuts: Settings | None) -> Iterator[tuple[PserverService, Server]]:
    service = PserverService(stripes=2, wait_timeout_s=WAIT_S, cuts=cuts)
    server = Server(service.handle, port=0)
    server.start()
    server.set_serving(True)
    service.start()
    try:
        yield service, server
    finally:
        service.stop()
        server.stop(0.0)


def test_a_cut_is_made_at_once_and_its_number_printed(
    running: Running, tmp_path: Path, capsys: Capture
) -> None:
    assert running.save(running.take_part) == 0

    assert capsys.readouterr().out == "7\n"
    assert find_cut(LocalDirectory(tmp_path), "latest").number == 7


def test_a_cut_that_is_given_up_has_an_exit_code_and_leaves_the_earlier_ones(
    running: Running, tmp_path: Path, capsys: Capture
) -> None:
    assert running.save(lambda number: running.service.stop()) == 62

    output = capsys.readouterr()
    assert output.out == ""
    assert "cut 7 was given up: the pserver is shutting down" in output.err
    assert complete_cuts(LocalDirectory(tmp_path)) == [1, 2, 3, 4, 5, 6]


def test_a_pserver_without_cuts_refuses_and_names_the_setting(capsys: Capture) -> None:
    with served(None) as (_, server):
        assert main.run(["checkpoint", "save", "--endpoint", server.endpoint]) == 2

    assert "--checkpoint-dir" in capsys.readouterr().err


# --- help -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", checkpoint.subcommands)
def test_every_command_of_the_group_teaches_with_an_example(name: str) -> None:
    own = checkpoint.get_command(click.Context(checkpoint), name)

    assert own
    assert own.help
    assert f"psrt checkpoint {name}" in (own.epilog or "")
    assert f"psrt checkpoint {name}" in (checkpoint.epilog or "")
