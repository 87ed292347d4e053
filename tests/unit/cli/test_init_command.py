"""`psrt init`: what it writes, what it refuses, and that its jobs are those of examples/."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from psrt.cli import main
from psrt.cli.init import DEFAULT, TEMPLATES, names
from psrt.config.load import load_job
from psrt.graph.verify import verify
from psrt.trainer.inputs import job as jobs
from tests.support.processes import clean_environment
from tests.support.written_job import commands, follow_readme

EXAMPLES = Path(__file__).parents[3] / "examples"


def written(directory: Path, *options: str) -> Path:
    assert main.run(["init", *options, str(directory)]) == 0
    return directory


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@pytest.mark.parametrize("name", names())
def test_an_example_is_copied_into_a_new_folder(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = written(tmp_path / "new" / "job", "--example", name)

    assert files_of(job) == files_of(TEMPLATES / name)
    assert {"README.md", "job.toml", f"{name}.py"} <= set(files_of(job))
    assert f"wrote README.md, {name}.py, job.toml" in capsys.readouterr().out


def test_the_default_example_fills_an_empty_folder(tmp_path: Path) -> None:
    job = written(tmp_path)

    assert files_of(job) == files_of(TEMPLATES / DEFAULT)


def test_a_folder_that_holds_files_is_refused_and_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    code = main.run(["init", str(tmp_path)])

    error = capsys.readouterr().err
    assert code == 2
    assert f"{tmp_path} is not empty (thesis.tex). Nothing was written." in error
    assert "Name a folder that does not exist yet" in error
    assert list(files_of(tmp_path)) == ["thesis.tex"]


def test_a_folder_that_cannot_be_made_is_an_error_of_the_catalogue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")

    code = main.run(["init", str(tmp_path / "file" / "job")])

    assert code == 2
    assert "cannot be written (Not a directory)" in capsys.readouterr().err


def test_an_unknown_example_is_refused_with_those_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.run(["init", "--example", "gpt", str(tmp_path / "job")])

    assert code == 2
    assert "fit-a-line" in capsys.readouterr().err
    assert not (tmp_path / "job").exists()


def test_the_list_names_each_example_with_a_title(capsys: pytest.CaptureFixture[str]) -> None:
    code = main.run(["init", "--list"])

    lines = capsys.readouterr().out.splitlines()
    assert code == 0
    assert [line.split()[0] for line in lines] == names()
    assert all(len(line.split()) > 3 for line in lines)


@pytest.mark.parametrize("name", names())
def test_python_files_are_those_of_the_example(name: str) -> None:
    own = {file: text for file, text in files_of(TEMPLATES / name).items() if file.endswith(".py")}
    example = files_of(EXAMPLES / name)

    assert own == {file: example.get(file) for file in own}, "examples/ is the source: copy it"


@pytest.mark.parametrize("name", names())
def test_settings_are_those_of_the_example(name: str) -> None:
    job = tomllib.loads((TEMPLATES / name / "job.toml").read_text())
    example = tomllib.loads((EXAMPLES / name / f"{name}.toml").read_text())

    if name == DEFAULT:  # a smaller network and smaller batches, for a first run in seconds
        assert job["job"].pop("params").keys() == example["job"].pop("params").keys()
        job["data"] |= {key: example["data"][key] for key in ("batch_size", "epochs")}
    assert job == example | {"data": job["data"]}
    assert job["data"] == example["data"]


@pytest.mark.parametrize("name", names())
def test_a_job_builds_a_legal_program(name: str, tmp_path: Path) -> None:
    job = written(tmp_path / "job", "--example", name) / "job.toml"

    verify(jobs.load_job(load_job(str(job), environ={}).config).program)


@pytest.mark.parametrize("name", names())
def test_a_readme_has_the_commands_for_data_one_machine_and_a_cluster(name: str) -> None:
    data, local, cluster, *_ = commands(TEMPLATES / name)

    assert data.startswith(("psrt data", "python make_data.py"))
    assert local.startswith("psrt trainer --local ")
    assert cluster.startswith("psrt launch --pservers 2 --trainers 2 ")


@pytest.mark.long  # `bin/package` runs the same commands, with an installed psrt
@pytest.mark.slow
@pytest.mark.timeout(400)  # six commands; the first may compile kernels
def test_the_commands_of_the_readme_train_alone_and_on_a_cluster(tmp_path: Path) -> None:
    job = written(tmp_path / "job")

    programs = Path(sys.executable).parent
    outputs = list(follow_readme(job, programs, clean_environment()))

    assert len(outputs) == len(commands(job))
    local, cluster = outputs[1:3]
    assert "trains here, without pservers" in local
    assert "started 2 pservers" in cluster
    assert "started 2 trainers" in cluster
    assert all("test  1,000 examples" in output for output in (local, cluster))
    assert (job / "model").is_dir()
