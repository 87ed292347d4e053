"""`psrt plan`: the placement of a job, as text and as JSON, without starting anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from psrt.cli import main
from psrt.config.load import load_job
from psrt.trainer.job import load_job as build

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
    assert ["fc_0.w_0.block0", "fc_0.w_0", "10×6", "0", "30", "120", "a:6170"] in cells
    assert ["fc_0.w_0.block1", "fc_0.w_0", "10×6", "30", "30", "120", "b:6170"] in cells
    assert ["rows", "4", "0", "to", "511", "512", "to", "1023"] in cells
    assert [line for line in cells if line and line[0] == "a:6170"] == [
        ["a:6170", "312", "2", "512", "68.4%"]
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


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--help")

    for word in ("psrt plan --endpoints", "min_block_size", "--format", "sparse table"):
        assert word in text
