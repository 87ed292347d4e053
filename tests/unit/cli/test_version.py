"""`psrt version`: in the form of the document, and true of this host."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import pytest

import psrt
from psrt.cli import main
from psrt.cli.host import cpu
from psrt.cli.version import facts, features

X86 = """\
processor	: 0
model name	: Fast One @ 3 GHz
flags		: fpu sse4_2 avx avx2

processor	: 1
model name	: Another
flags		: none
"""
ARM = "processor\t: 0\nBogoMIPS\t: 50\nFeatures\t: fp asimd sve\n"


def test_the_first_lines_are_those_of_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["version"])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert lines[0] == f"psrt {psrt.__version__}"
    switches = lines[1 : 1 + len(features())]
    assert {"    with_gpu: OFF", "    with_rdma: OFF", "    with_double: ON"} <= set(switches)
    assert {"    with_python: ON", "    with_timer: ON"} <= set(switches)
    assert all(line.startswith("    with_") for line in switches)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_PSRT_COMPLETE", f"{shell}_complete")
    monkeypatch.setenv("COMP_WORDS", "psrt la")
    monkeypatch.setenv("COMP_CWORD", "1" if shell != "fish" else "la")

    with pytest.raises(SystemExit) as ended:
        main.run([])

    assert ended.value.code == 0
    assert "launch" in capsys.readouterr().out


def test_every_other_line_is_a_fact_for_a_bug_report(capsys: pytest.CaptureFixture[str]) -> None:
    main.run(["version"])

    lines = capsys.readouterr().out.splitlines()[1 + len(features()) :]
    assert [line.split()[0] for line in lines] == list(facts())
    assert {"psrt", "python", "numpy", "blas", "numba", "platform", "cpu"} <= set(facts())
    for package in ("numpy", "numba", "grpcio", "protobuf", "uvloop"):
        assert facts()[package] == version(package)


def test_the_same_as_json_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["version", "--json"])

    assert code == 0
    assert json.loads(capsys.readouterr().out) == {"with": features(), **facts()}


@pytest.mark.parametrize(
    ("text", "model", "can", "cannot"),
    [(X86, "Fast One @ 3 GHz", "avx2", "avx512f"), (ARM, None, "sve", "avx")],
    ids=["x86", "arm"],
)
def test_the_cpu_is_read_as_linux_tells_it(
    tmp_path: Path, text: str, model: str | None, can: str, cannot: str
) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(text)

    found = cpu(cpuinfo)

    assert model is None or found.model == model
    assert found.model
    assert can in found.features
    assert cannot not in found.features


def test_a_host_that_tells_nothing_has_no_known_features(tmp_path: Path) -> None:
    found = cpu(tmp_path / "gone")

    assert found.model
    assert found.features == frozenset()
