"""The page of a running job over HTTP: what it serves, to whom, and that it ends."""

from __future__ import annotations

import http.client
import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from psrt.rpc import pb
from psrt.rpc.methods import Method
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, psrt
from tests.support.pserver import CALL_TIMEOUT_S, DaemonProcess, daemon, joined

POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'"


def answer(endpoint: str, path: str, host: str = "") -> tuple[http.client.HTTPResponse, str]:
    with closing(http.client.HTTPConnection(endpoint, timeout=60)) as connection:
        connection.request("GET", path, headers={"Host": host} if host else {})
        found = connection.getresponse()
        return found, found.read().decode()


def view(endpoint: str) -> dict[str, Any]:
    return dict(json.loads(answer(endpoint, "/view.json")[1]))


def in_view(pserver: DaemonProcess, pservers: int, reached: bool) -> dict[str, Any]:
    """The view once it has so many pservers, all of them or not all `reached`."""
    found: dict[str, Any] = {}

    def has_come() -> bool:
        found.update(view(pserver.facts["metrics"]))
        is_all = all(each["reached"] for each in found["pservers"])
        return len(found["pservers"]) == pservers and is_all == reached

    eventually(has_come, "the view of the job", DEADLINE_S, logs=[pserver.log])
    return found


def introduce(pservers: list[Any]) -> None:
    """Let a trainer tell each pserver of all."""
    clients = [joined(each.endpoint, trainers=2) for each in pservers]
    try:
        found = [
            pb.PserverProcess(
                endpoint=each.endpoint, incarnation=client.connect(CALL_TIMEOUT_S).incarnation
            )
            for each, client in zip(pservers, clients, strict=True)
        ]
        for client in clients:
            header = pb.Header(register=pb.Register(pservers=found))
            client.call(Method.REGISTER, header=header, timeout_s=CALL_TIMEOUT_S)
    finally:
        for client in clients:
            client.close()


def test_each_pserver_shows_the_whole_job(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    metrics = "--metrics", "127.0.0.1:0"
    with daemon(tmp_path / "one", *metrics) as one, daemon(tmp_path / "other", *metrics) as other:
        alone = view(one.facts["metrics"])
        introduce([one, other])
        both = [in_view(each, 2, reached=True) for each in (one, other)]
        other.end()
        gone = in_view(one, 2, reached=False)

    assert [each["endpoint"] for each in alone["pservers"]] == ["this pserver"]
    endpoints = [one.endpoint, other.endpoint]
    for found in both:
        assert [each["endpoint"] for each in found["pservers"]] == endpoints
        assert found["verdict"]["text"] == "The job waits for trainer 1 to start."
    assert gone["verdict"]["text"] == f"{other.endpoint} does not answer."


def test_the_page_allows_nothing_from_elsewhere_and_no_other_name(tmp_path: Path) -> None:
    with daemon(tmp_path, "--metrics", "127.0.0.1:0", "--metrics-names", "job.example") as pserver:
        where = pserver.facts["metrics"]
        page, text = answer(where, "/")
        files = re.findall(r'(?:href|src)="(/[^"#]+)"', text)
        found = {path: answer(where, path) for path in files}
        script = found["/page.js"][1]
        imported = answer(where, "/drawing.js")[0]
        named, other = answer(where, "/", "job.example"), answer(where, "/", "evil.example")

    assert page.status == imported.status == 200
    assert {each.status for each, _ in found.values()} == {200}
    for each in (page, *(each for each, _ in found.values())):
        assert each.headers["Content-Security-Policy"].startswith(POLICY)
        assert each.headers["X-Content-Type-Options"] == "nosniff"
    assert 'from "/drawing.js"' in script
    assert re.findall(r"https?://(?!www\.w3\.org/2000/svg)", text + script) == []
    assert named[0].status == 200
    assert other[0].status == 421


def test_a_pserver_that_ends_ends_its_streams(tmp_path: Path) -> None:
    with daemon(tmp_path, "--metrics", "127.0.0.1:0") as pserver:
        connection = http.client.HTTPConnection(pserver.facts["metrics"], timeout=60)
        with closing(connection):
            connection.request("GET", "/events")
            stream = connection.getresponse()
            begin = stream.readline(), stream.readline(), stream.readline()
            code = pserver.end()
            rest = stream.read()

    assert begin[0] == b"retry: 2000\n"
    assert begin[2].startswith(b'data: {"at_s":')
    assert code == 0
    assert rest.count(b"data: ") < 60


@pytest.mark.parametrize("path", ["/view.json", "/"])
def test_status_serves_the_page_of_a_job_on_this_host(tmp_path: Path, path: str) -> None:
    with daemon(tmp_path) as pserver:
        joined(pserver.endpoint, trainers=2).close()
        log = tmp_path / "status.log"
        with psrt(log, "status", pserver.endpoint, "--web", PYTHONUNBUFFERED="1") as status:
            eventually(lambda: "http://127.0.0.1:" in status.output, "the address", DEADLINE_S)
            where = status.output.strip().removeprefix("http://").rstrip("/")
            found, text = answer(where, path)

    assert found.status == 200
    assert ("psrt" if path == "/" else pserver.endpoint) in text
