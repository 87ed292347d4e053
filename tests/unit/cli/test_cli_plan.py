"""`psrt plan`: the placement of a job, as text and as JSON, without starting anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from psrt.cli import main
from psrt.cli.plan.use import limits_of
from psrt.config.load import load_job
from psrt.config.sections import SizeConfig, stripes_for
from psrt.sizing import concerns
from psrt.trainer.inputs.job import load_job as build
from tests.support import small_job

PROGRAM = """
import psrt
from psrt import layers

def build():
    x = layers.data("x", shape=(10,))
    y = layers.data("y")
    ids = layers.data("ids", shape=(2,), dtype="int64")
    rows = layers.flatten(layers.embedding(ids, (1000, 4), is_sparse=True, param="rows"))
    hidden = layers.fc([x, rows], 6, param=None, bias=False)
    loss = layers.mean(layers.square_error_cost(layers.fc(hidden, 1, bias=False), y))
    return psrt.Model(loss, optimizer=psrt.optimizer.Sgd(0.1))
"""
JOB = """
[job]
name = "small"
program = "program.py"
[partition]
min_block_size = 30
"""
ENDPOINTS = "a:6170,b:6170"


@pytest.fixture
def job(tmp_path: Path) -> str:
    (tmp_path / "program.py").write_text(PROGRAM)
    path = tmp_path / "job.toml"
    path.write_text(JOB)
    return str(path)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main.run(["plan", *arguments]) == 0
    return capsys.readouterr().out


def test_text_shows_every_block_every_table_and_the_balance(
    job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    title, _, *rest = printed(capsys, "--endpoints", ENDPOINTS, job).splitlines()

    assert title.startswith("job small, mode sync, 2 pservers, plan ")
    cells = [line.split() for line in rest]
    assert ["fc_0.w_0.block0", "fc_0.w_0", "10×6", "0", "30", "120", "b:6170"] in cells
    assert ["fc_0.w_0.block1", "fc_0.w_0", "10×6", "30", "30", "120", "b:6170"] in cells
    assert ["rows", "4", "0", "to", "511", "512", "to", "1023"] in cells
    assert [line for line in cells if line and line[0] == "a:6170"] == [
        ["a:6170", "216", "2", "512", "47.4%"]
    ]


def test_json_holds_what_trainers_and_pservers_will_compute(
    job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = json.loads(printed(capsys, "--endpoints", ENDPOINTS, "--format", "json", job))

    plan = build(load_job(job).config).plan(ENDPOINTS.split(","))
    assert facts["plan_hash"] == plan.hash()
    assert [(b["block"], b["endpoint"]) for b in facts["blocks"]] == [
        (block.spec.name, block.endpoint) for block in plan.blocks
    ]
    (table,) = facts["tables"]
    assert table == {
        "table": "rows",
        "width": 4,
        "virtual_shards": {"a:6170": [0, 512], "b:6170": [512, 1024]},
    }
    assert sum(held["dense_bytes"] for held in facts["balance"]) == 4 * (60 + 48 + 6)
    assert sum(held["share"] for held in facts["balance"]) == pytest.approx(1)


def test_endpoints_come_from_the_environment_too(
    job: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PADDLE_PSERVERS_IP_PORT_LIST", "c:1,d:2,e:3")

    assert "3 pservers" in printed(capsys, job)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no pservers were named"),
        (["--endpoints", "a"], "'a', which is not host:port"),
        (["--endpoints", "a:1,a:1"], "a:1 is listed twice"),
        (["--endpoints", ENDPOINTS, "--format", "yaml"], "expected one of text, json"),
    ],
)
def test_what_cannot_be_planned_is_said(
    job: str, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert main.run(["plan", *arguments, job]) == 2
    assert said in capsys.readouterr().err


def test_an_uneven_plan_is_said_in_text_and_json(
    job: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(concerns, "DENSE_THAT_MATTERS_BYTES", 1)
    with Path(job).open("a") as file:
        file.write('split_method = "RoundRobin"\n')

    text = printed(capsys, "--endpoints", ENDPOINTS, job)
    facts = json.loads(printed(capsys, "--endpoints", ENDPOINTS, "--format", "json", job))

    said = "dense parameters are uneven: a:6170 holds 312 B, b:6170 144 B."
    assert f"! {said}" in text
    assert facts["warnings"][0].startswith(said)


def test_a_small_plan_may_be_uneven(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "!" not in printed(capsys, "--endpoints", ENDPOINTS, job)


def sized(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(printed(capsys, "--size", "--format", "json", *arguments))


def test_size_tells_memory_calls_and_links(job: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--size", "--trainers", "4", "--steps-per-s", "10", job)

    lines = [line.split() for line in text.splitlines()]
    assert text.startswith(
        "job small, mode sync, 4 trainers with steps of 512 examples, 10 of them a second\n"
    )
    assert ["rows", "1,000", "32", "1,024", "1,000", "steps^1.00"] in lines
    assert "1 pserver is enough" in text
    assert any(line[:2] == ["exchange", "1"] for line in lines)
    assert any(line[:4] == ["a", "trainer", "10", "1"] for line in lines)


def test_size_takes_rows_ids_and_speed_from_flags_or_the_job_file(
    job: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--rows", "rows=2G", "--ids", "rows=8", "--batch", "100", "--examples-per-s", "500"]
    flagged = sized(capsys, *flags, "--distinct", "0.5", job)
    with Path(job).open("a") as file:
        file.write('[size]\nrows = ["rows=2G"]\nids = ["rows=8"]\nbatch = 100\n')
        file.write("examples_per_s = 500.0\ndistinct = 0.5\n")

    assert sized(capsys, job) == flagged
    (table,) = flagged["tables"]
    assert (table["rows"], table["ids_per_step"]) == (2 * 10**9, 800)
    assert table["distinct_ids_per_step"] == 400
    assert flagged["trainer"]["steps_per_s"] == 5
    assert flagged["decided_by"] == "memory"
    assert flagged["pservers"] == flagged["least_pservers"]["memory"] == 2


@pytest.mark.parametrize("given", [["--pservers", "3"], ["--endpoints", "a:1,b:2,c:3"]])
def test_size_of_a_given_number_of_pservers(
    job: str, capsys: pytest.CaptureFixture[str], given: list[str]
) -> None:
    facts = sized(capsys, *given, job)

    assert (facts["pservers"], facts["decided_by"]) == (3, "")
    assert sum(load["rows"] for load in facts["per_pserver"]) == 1000


def test_size_measures_the_data_when_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = small_job.write_files(tmp_path / "job", [small_job.lines(320, seed=1)])

    facts = sized(capsys, "--sample", "10", str(job))

    (table,) = facts["tables"]
    assert table["ids_per_step"] == 2 * small_job.BATCH
    assert 30 < table["distinct_ids_per_step"] < 2 * small_job.BATCH  # of 100 ids in all
    assert 0 < table["growth"] < 0.5


def test_size_of_a_ragged_slot_must_be_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = small_job.write_files(tmp_path / "job", [small_job.lines(32, seed=1)])

    assert main.run(["plan", "--size", str(job)]) == 2
    said = capsys.readouterr().err
    assert "the number of ids of an example in ids is not declared" in said
    assert f"--ids {small_job.TABLE}=N" in said


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--rows", "row=5M"], "no sparse table 'row'"),
        (["--rows", "rows=many"], "rows of rows is 'many'"),
        (["--pserver-memory", "64"], "pserver_memory is '64', which is no size"),
        (["--pserver-bandwidth", "10GiB"], "pserver_bandwidth is '10GiB', which is no rate"),
        (["--rows", "rows=0"], "rows of rows is '0'; it must be at least 1"),
        (["--ids", "rows=0"], "ids of rows is '0'; it must be at least 1"),
        (["--distinct", "0"], "distinct is 0, which is no part"),
        (["--growth", "1.5"], "growth is 1.5: distinct ids cannot grow faster than steps"),
        (["--pservers", "100000"], "cannot be shared among 100000 pservers"),
        (["--steps-per-s", "1", "--examples-per-s", "1"], "are both given"),
        (["--pserver-memory", "1MiB"], "with 1024 pservers"),
    ],
)
def test_what_cannot_be_sized_is_said(
    job: str, capsys: pytest.CaptureFixture[str], flags: list[str], said: str
) -> None:
    assert main.run(["plan", "--size", *flags, job]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("cores", "stripes"), [(1, 1), (8, 8), (64, 16)])
def test_a_table_has_a_stripe_for_each_core_but_not_many(cores: int, stripes: int) -> None:
    assert stripes_for(cores) == stripes
    assert limits_of(SizeConfig(pserver_cores=cores)).stripes == stripes
    assert limits_of(SizeConfig(pserver_cores=cores, stripes=40)).stripes == 40


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--help")

    for word in ("psrt plan --endpoints", "min_block_size", "--format", "sparse table", "--size"):
        assert word in text
