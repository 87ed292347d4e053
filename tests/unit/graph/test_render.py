"""Programs as text and as drawings, golden, and `psrt graph`, which shows those of jobs."""

from __future__ import annotations

import dataclasses
import re
import stat
from pathlib import Path

import pytest

import psrt
from psrt import layers
from psrt.cli import main
from psrt.graph.program import ROLES, Program
from psrt.graph.render import to_dot, to_text
from tests.support.small_job import write_files

GOLDEN = Path(__file__).parents[2] / "golden"


def small() -> Program:
    with psrt.program(seed=1) as program:
        ids = layers.data("ids", shape=(1,), dtype="int64", ragged=True)
        tags = layers.data("tags", shape=(2,), dtype="int64")
        x = layers.data("x", shape=(4,))
        pooled = layers.slot_embeddings([ids], (10, 3))
        tag = layers.embedding(tags, (7, 2), is_sparse=True)
        joined = layers.concat([pooled, layers.reshape(tag, (-1, 4)), x], axis=1)
        score = layers.fc(layers.fc(joined, 2, act="relu"), 1)
        loss = layers.mean(layers.square_error_cost(score, layers.data("y", shape=(1,))))
        psrt.optimizer.Adagrad(0.1).minimize(loss)
    program.ops = [dataclasses.replace(op, origin="train.py:7") for op in program.ops]
    return program


@pytest.mark.parametrize(
    ("name", "render"), [("program.txt", to_text), ("program.dot", to_dot)], ids=["text", "dot"]
)
def test_a_small_program_is_rendered_as_its_golden_file_says(name: str, render: object) -> None:
    assert callable(render)

    text = render(small())

    assert text == (GOLDEN / name).read_text(encoding="utf-8")
    assert render(small()) == text


def test_the_forward_part_has_no_gradients_and_no_updates() -> None:
    text, dot = to_text(small(), ROLES[:1]), to_dot(small(), ROLES[:1])

    for shown in (text, dot):
        assert "@GRAD" not in shown
        assert "update" not in shown
        assert "fc_1.w_0" in shown


def test_the_text_has_every_op_and_the_size_of_what_a_trainer_holds() -> None:
    program = small()

    lines = to_text(program).splitlines()

    assert lines[0].startswith(f"{len(program.ops)} ops; ")
    assert [line.split()[1] for line in lines[3 : 3 + len(program.ops)]] == [
        op.type for op in program.ops
    ]
    elements = 7 * 2 + 11 * 2 + 2 + 2 * 1 + 1
    assert lines[-1] == (
        f"{elements} elements, {4 * elements} bytes in 5 parameters, "
        "and 1 distributed table(s) that grow by the ids they meet"
    )


def test_every_end_of_an_edge_is_a_node() -> None:
    dot = to_dot(small())

    nodes = set(re.findall(r'^ +("[^"]+") \[label', dot, re.M))
    ends = set(re.findall(r'^ +("[^"]+") -> ("[^"]+")', dot, re.M))

    assert {end for edge in ends for end in edge} <= nodes
    assert dot.count("{") == dot.count("}")


def test_names_with_quotes_are_legal_dot() -> None:
    with psrt.program() as program:
        layers.fc(layers.data('say "x"', shape=(2,)), 1)

    assert r'"var say \"x\"" [label="say \"x\"\nfloat32 [N,2]"' in to_dot(program)


# --- psrt graph -----------------------------------------------------------------------------------


def test_psrt_graph_prints_the_program_of_a_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = write_files(tmp_path, [])

    code = main.run(["graph", str(job)])

    output = capsys.readouterr().out
    assert code == 0
    assert "slot_embeddings_0.w_0  [any,4]" in output
    assert "@GRAD" not in output


def test_psrt_graph_writes_dot_by_the_name_of_the_file(tmp_path: Path) -> None:
    job, out = write_files(tmp_path, []), tmp_path / "graph.dot"

    code = main.run(["graph", "--role", "all", "--out", str(out), str(job)])

    assert code == 0
    assert out.read_text().startswith("digraph program {")
    assert "cluster_optimize" in out.read_text()


def test_a_drawing_without_graphviz_is_refused_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = write_files(tmp_path, [])
    monkeypatch.setenv("PATH", str(tmp_path))

    code = main.run(["graph", "--out", str(tmp_path / "graph.svg"), str(job)])

    errors = capsys.readouterr().err
    assert code == 2
    assert "there is no program `dot` on this host" in errors
    assert "dot -Tsvg graph.dot -o graph.svg" in errors


def test_a_drawing_is_made_by_graphviz(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, out, dot = write_files(tmp_path, []), tmp_path / "graph.svg", tmp_path / "dot"
    dot.write_text('#!/bin/sh\n{ echo "$1 $2"; /bin/cat; } > "$3"\n')
    dot.chmod(dot.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path))

    code = main.run(["graph", "--out", str(out), str(job)])

    assert code == 0
    assert out.read_text().startswith("-Tsvg -o\ndigraph program {")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--format", "text", "--out", "graph.svg"), "which is a drawing"),
        (("--out", "gone/graph.dot"), "cannot be written to gone/graph.dot"),
    ],
)
def test_an_output_that_makes_no_sense_is_refused(
    arguments: tuple[str, ...],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = write_files(tmp_path, [])
    monkeypatch.chdir(tmp_path)

    code = main.run(["graph", *arguments, str(job)])

    assert code == 2
    assert expected in capsys.readouterr().err
