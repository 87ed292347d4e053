"""A short run of each part of the lab, and that it finds defects that are planted."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from psrt.core.errors import InternalError
from psrt.core.threads import CrashReport
from psrt.observe.http_server import HttpPage, HttpServer
from psrt.rpc.server import Server
from tests.fuzz import parsers, stages
from tests.fuzz.attack import attack
from tests.fuzz.doors import Doors
from tests.fuzz.ledger import Ledger
from tests.fuzz.mutate import MOST_BYTES, mutated
from tests.fuzz.seeds import frames
from tests.fuzz.stages import Drawn, drawn, guided
from tests.fuzz.victim import SHARED_BYTES, Victim

FEW = 3_000


def test_mutated_frames_are_refused_by_name_and_nothing_else() -> None:
    totals = drawn(FEW, 0, 1, None, Ledger())

    assert totals.defects == []
    assert len(totals.frames) == len(parsers.Targets().by_name)
    assert len(totals.outcomes) > 50


def test_a_run_goes_on_where_one_before_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "FRAMES_OF_A_SEED", 100)
    path = tmp_path / "ledger"
    first = drawn(200, 0, 1, None, Ledger(path))
    with path.open("a") as file:
        file.write('{"stage": "drawn", "number": 2, "pa')

    ran = []
    monkeypatch.setattr(stages, "_of_seed", _recording(stages._of_seed, ran))
    both = drawn(400, 0, 1, None, Ledger(path))

    assert ran == [2, 3]
    assert sum(first.frames.values()) == 200
    assert sum(both.frames.values()) == 400
    assert first.outcomes < both.outcomes
    assert drawn(400, 0, 1, None, Ledger(path)) == both
    assert ran == [2, 3]


def _recording(run: Callable[[int, int], Drawn], ran: list[int]) -> Callable[[int, int], Drawn]:
    def recorded(count: int, seed: int) -> Drawn:
        ran.append(seed)
        return run(count, seed)

    return recorded


def test_a_seed_repeats_its_frames() -> None:
    corpus = frames()

    first, second = (
        [mutated(draw.choice(corpus), draw, corpus) for _ in range(200)]
        for draw in (random.Random(5), random.Random(5))
    )

    assert first == second
    assert max(map(len, first)) <= MOST_BYTES


@pytest.mark.parametrize("error", [ValueError("planted"), InternalError("planted")])
def test_a_planted_defect_is_found_with_its_frame(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(frame: bytes) -> str:
        raise error

    fuzzer = parsers.Fuzzer(1, ["frame"])
    monkeypatch.setitem(fuzzer._targets.by_name, "frame", broken)
    fuzzer.run(1)

    (defect,) = fuzzer.tally.defects
    assert defect.startswith("frame ")
    assert "planted" in defect


def test_a_slow_frame_is_a_defect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "SLOW_S", -1.0)
    fuzzer = parsers.Fuzzer(1)
    fuzzer.run(1)

    assert "of the processor" in fuzzer.tally.defects[0]


def test_frames_guided_by_coverage_find_no_defect() -> None:
    pytest.importorskip("atheris")

    found = guided(500, 1, Ledger())

    assert found["defects"] == []
    assert found["frames"] >= 500
    assert found["branches"] > 20


@pytest.fixture(scope="module")
def addresses() -> Iterator[dict[str, str]]:
    """Servers of this process, and that none of their threads crashed."""
    crashes = CrashReport()
    victim = Victim(crashes)
    pserver = Server(victim.call, unix_dir="", shared_bytes=SHARED_BYTES, crashes=crashes)
    shuffle = Server(victim.record, crashes=crashes)
    http = HttpServer("127.0.0.1:0", {"/metrics": lambda accept: HttpPage(b"a")}, crashes)
    for server in (pserver, shuffle):
        server.start()
    yield {
        "grpc": pserver.endpoint,
        "stream": pserver.data_endpoints[0],
        "unix": pserver.unix_path,
        "shuffle": shuffle.data_endpoints[0],
        "shuffle grpc": shuffle.endpoint,
        "http": http.endpoint,
    }
    for server in (pserver, shuffle):
        server.stop(1.0)
    http.close()
    victim.stop()
    crashes.check()


DOORS = "stream", "shuffle", "unix", "shared memory", "grpc", "shuffle grpc", "http2", "http"


@pytest.mark.parametrize("name", DOORS)
def test_frames_through_a_door_are_answered_or_hung_up_on(
    addresses: dict[str, str], name: str, caplog: pytest.LogCaptureFixture
) -> None:
    doors = Doors(addresses, frames(), random.Random(name))

    sent = sum(doors.throw(name) for _ in range(20))
    doors.close()

    assert sent > 0
    assert [record.message for record in caplog.records if record.exc_info] == []


def test_an_honest_trainer_is_served_while_strangers_attack(tmp_path: Path) -> None:
    found = attack(tmp_path, seconds=2.0, turns=1, connections=100, seed=1, nice=0)

    report = found.report()
    assert found.defects == []
    assert report["frames"] > 0
    assert report["steps_per_s"]["attacked"] > 0
    assert report["connections"]["most"] == 100
    assert json.dumps(report)
