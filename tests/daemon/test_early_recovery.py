"""A pserver that is killed before anything of it is durable goes on from the job's beginning."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from tests.daemon.test_recovery import model_of, plain_job, written_job
from tests.support.by_hand import train_by_hand
from tests.support.processes import psrt
from tests.support.pserver import daemon


@pytest.mark.long
def test_in_sync_it_changes_no_bit_and_nobody_else_is_started_again(tmp_path: Path) -> None:
    """Both pservers are killed in their first cut, before anything of it is written."""
    job = written_job(tmp_path, "sync")
    train_by_hand(plain_job(tmp_path / "plain", "sync"), tmp_path / "whole")
    places = [tmp_path / name for name in ("killed-0", "killed-1", "again-0", "again-1")]
    for place in places:
        place.mkdir()
    flags = "--config", str(job), "--checkpoint-dir", str(tmp_path / "cuts")
    with ExitStack() as stack:
        killed = [
            stack.enter_context(daemon(place, *flags, PSRT_FAILPOINT="cut.frozen=kill"))
            for place in places[:2]
        ]
        endpoints = [each.endpoint for each in killed]
        given = "--endpoints", ",".join(endpoints), "--trainers", "2", "--trainer-id"
        saving = "0", "--save", str(tmp_path / "model")
        trainers = [
            stack.enter_context(
                psrt(tmp_path / f"{which[0]}.log", "trainer", *given, *which, str(job))
            )
            for which in (saving, ("1",))
        ]
        assert [each.exit_code() for each in killed] == [-9, -9]
        again = [
            stack.enter_context(
                daemon(place, *flags, "--recover", "--port", endpoint.rpartition(":")[2])
            )
            for place, endpoint in zip(places[2:], endpoints, strict=True)
        ]
        assert [each.exit_code() for each in trainers] == [0, 0]
        assert [each.exit_code() for each in again] == [0, 0]

    assert all("goes on with the beginning" in each.log.read_text() for each in again)
    expected, found = model_of(tmp_path / "whole"), model_of(tmp_path / "model")
    assert expected.keys() == found.keys()
    assert [name for name in expected if not np.array_equal(expected[name], found[name])] == []
