"""`psrt status` of running jobs."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from psrt.core.errors import CATALOGUE, ErrorCode
from tests.support.carriers import eventually
from tests.support.processes import DEADLINE_S, psrt
from tests.support.pserver import daemon, joined, onlooker, status
from tests.support.small_job import lines, write_files


def shown(folder: Path, *arguments: str) -> tuple[int, str]:
    with psrt(folder / "status.log", "status", *arguments) as running:
        return running.exit_code(), running.output


def has_met_a_trainer(facts: dict[str, Any]) -> bool:
    return any(trainer["state"] == "running" for trainer in facts["trainers"])


def test_a_job_that_waits_for_a_trainer_says_so(tmp_path: Path) -> None:
    job = write_files(tmp_path, [lines(320, seed=1)])
    with daemon(tmp_path) as pserver:
        given = "--endpoints", pserver.endpoint, "--trainers", "2", "--trainer-id", "0"
        with psrt(tmp_path / "trainer.log", "trainer", str(job), *given):
            with closing(onlooker(pserver.endpoint)) as client:
                eventually(
                    lambda: has_met_a_trainer(status(client)), "the first trainer", DEADLINE_S
                )
            code, text = shown(tmp_path, pserver.endpoint)

    assert code == 0, text
    assert text.startswith("job small (Sync)")
    assert f"{pserver.endpoint}: the job waits for trainer 1 to start" in text


def test_json_has_the_facts_of_each_pserver(tmp_path: Path) -> None:
    with daemon(tmp_path) as pserver:
        client = joined(pserver.endpoint)
        code, text = shown(tmp_path, pserver.endpoint, "127.0.0.1:1", "--json")
        client.close()

    known, missing = json.loads(text)["pservers"]
    assert code == 0
    assert known["job"] == "job"
    (table,) = known["tables"]
    facts = table["name"], table["kind"], table["size_bytes"], table["rows"]
    assert facts == ("w", "dense", 16, None)
    assert missing["endpoint"] == "127.0.0.1:1"
    assert "cannot be reached" in missing["reason"]


def test_without_any_pserver_it_fails_with_the_reason(tmp_path: Path) -> None:
    code, text = shown(tmp_path, "127.0.0.1:1", "--timeout-s", "1")

    assert code == CATALOGUE[ErrorCode.UNAVAILABLE].exit_code
    assert "No pserver answers" in text
