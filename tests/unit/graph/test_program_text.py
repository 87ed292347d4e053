"""The text form of programs: exact round trip, readable refusals."""

from __future__ import annotations

import json

import pytest

from psrt import Model, Param, Program, initializer, layers, optimizer, program
from psrt.core.errors import ProgramError
from psrt.graph.program import Var, seed_of
from psrt.graph.verify import verify


def ctr(seed: int = 3) -> Program:
    """Every kind of var, parameter and attribute."""
    with program(seed=seed) as p:
        lists = layers.data("lists", dtype="int64", ragged=True)
        ids = layers.data("ids", (2,), "int64")
        dense = layers.data("dense", (13,))
        click = layers.data("click")
        pooled = layers.slot_embeddings([lists, ids], (1000, 8), "max", padding_idx=-1)
        own = layers.embedding(
            ids, (50, 4), param=Param("own", initializer.Normal(0.0, 0.1), trainable=False)
        )
        hidden = layers.fc([pooled, dense, layers.flatten(own)], 16, act="relu")
        logit = layers.fc(hidden, 1)
        loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
        layers.auc(logit, click, from_logits=True)
        schedule = optimizer.PiecewiseDecay((10, 20), (0.1, 0.01, 0.001))
        Model(loss, logit, click, optimizer.Adagrad(schedule), "logit")
    return p


def test_text_of_a_program_reads_back_equal() -> None:
    original = ctr()

    copy = Program.from_text(original.to_text())

    assert copy == original
    assert copy.to_text() == original.to_text()
    verify(copy)


def test_program_built_twice_is_the_same_text() -> None:
    assert ctr().to_text() == ctr().to_text()


def test_text_survives_names_with_any_character() -> None:
    p = Program()
    for name in ('a "quoted" name', "zeile\u2028zwei", "пример", "tab\tname"):
        p.vars[name] = Var(name, (-1, 2), kind="data")

    assert Program.from_text(p.to_text()) == p


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "Line 1"),
        ('psrt-program 2 {"seed": 0}\n', "Line 1.*psrt-program 1"),
        ('psrt-program 1 {"seed": 0}\nvar {"name": "x"}\n', "Line 2.*shape"),
        ('psrt-program 1 {"seed": 0}\nblob {}\n', "Line 2.*'blob'"),
        ('psrt-program 1 {"seed": 0}\nop {"type"\n', "Line 2"),
        ('psrt-program 1 {"seed": 0}\nparameter {"name": "w", "seed": {"kind": "Evil"}}\n', "Evil"),
        ('psrt-program 1 {"seed": 0}\nvar []\n', "Line 2"),
        ('psrt-program 1 {"seed": 0}\nvar ' + "[" * 100_000, "Line 2"),
    ],
)
def test_text_that_is_no_program_is_refused_by_line(text: str, complaint: str) -> None:
    with pytest.raises(ProgramError, match=complaint):
        Program.from_text(text)


@pytest.mark.parametrize("word", ["var", "parameter", "op"])
@pytest.mark.parametrize("value", [None, 5, True, "zz", [], {}, [[5]], {"x": 5}, {"x": ["a", 1]}])
def test_a_field_of_another_type_is_refused_or_reads_back(word: str, value: object) -> None:
    """The text is refused by line, or is that of a program, for any value of a field."""
    lines = ctr().to_text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith(f"{word} "))
    fields = json.loads(lines[at].partition(" ")[2])
    for name in [*fields, *("attrs", "role", "kind", "optimizer", "ragged", "padding_id")]:
        lines[at] = f"{word} {json.dumps(fields | {name: value})}"
        message = f"Line {at + 1} "
        try:
            read = Program.from_text("\n".join(lines))
        except ProgramError as error:
            message = error.message
        else:
            assert Program.from_text(read.to_text()) == read
        assert f"Line {at + 1} " in message


@pytest.mark.parametrize("role", ["adjust", "clip_and_decay"])
def test_both_names_of_the_role_of_clipping_are_read_and_the_first_is_written(role: str) -> None:
    """Saved models bear "adjust"; their text stays as it is."""
    op = {"type": "relu", "inputs": {"x": ["a"]}, "outputs": {"out": ["b"]}, "role": role}

    read = Program.from_text(f'psrt-program 1 {{"seed": 0}}\nop {json.dumps(op)}\n')

    assert [op.role for op in read.ops] == ["clip_and_decay"]
    assert '"role": "adjust"' in read.to_text()


@pytest.mark.parametrize("slot", ["inputs", "outputs", "attrs"])
@pytest.mark.parametrize("value", [None, 5, "zz", []])
def test_slots_and_attributes_of_an_op_are_objects(slot: str, value: object) -> None:
    fields = {"type": "relu", "inputs": {}, "outputs": {}, slot: value}

    with pytest.raises(ProgramError, match=f"Line 2 .* op has {slot} "):
        Program.from_text(f'psrt-program 1 {{"seed": 0}}\nop {json.dumps(fields)}\n')


def test_branches_within_branches_have_a_text_that_grows_by_levels_alone() -> None:
    def nested(x: Var, low: Var, depth: int) -> Var:
        if not depth:
            return layers.fc(x, 2)
        found = layers.cond(low, lambda: nested(x, low, depth - 1), lambda: x * 2.0)
        assert isinstance(found, Var)
        return found

    sizes = []
    for depth in range(1, 6):
        with program() as p:
            x = layers.data("x", (2,))
            nested(
                x,
                layers.less_than(layers.reduce_sum(x), layers.fill_constant((), "float32", 0.0)),
                depth,
            )
        sizes.append(len(p.to_text()))
        assert Program.from_text(p.to_text()) == p

    assert sizes[-1] - sizes[-2] < 1.5 * (sizes[1] - sizes[0])


def test_a_turn_written_as_a_string_is_read_too() -> None:
    with program() as p:
        x = layers.data("x", (2,))
        layers.cond(
            layers.less_than(layers.reduce_sum(x), layers.fill_constant((), "float32", 0.0)),
            lambda: x * 2.0,
            lambda: x,
        )
    lines = p.to_text().splitlines()
    at = next(n for n, line in enumerate(lines) if '"while_loop"' in line)
    fields = json.loads(lines[at].removeprefix("op "))
    fields["attrs"]["body"] = next(op for op in p.ops if op.type == "while_loop").attrs["body"]
    lines[at] = f"op {json.dumps(fields)}"

    assert Program.from_text("\n".join([*lines, ""])) == p


def test_seed_of_a_parameter_depends_on_program_seed_and_name_alone() -> None:
    first, second = ctr(seed=3), ctr(seed=4)

    assert first.parameters["fc_0.w_0"].seed == seed_of(3, "fc_0.w_0")
    assert second.parameters["fc_0.w_0"].seed == seed_of(4, "fc_0.w_0")
    assert seed_of(0, "fc_0.w_0") == 750488883
    assert len({p.seed for p in first.parameters.values()}) == len(first.parameters)


def test_data_vars_come_in_order_of_declaration() -> None:
    assert [var.name for var in ctr().data_vars()] == ["lists", "ids", "dense", "click"]
