"""Checks of a built package, for bin/package.

    python -m tests.package.check files DIST       the wheel in DIST holds psrt/, whole and alone
    python -m tests.package.check training VENV    psrt of VENV writes a job and trains it

Training happens in a temporary folder, with the compiled kernels of this user: those of a
checkout with equal sources serve an installation as well.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

from tests.support.processes import clean_environment
from tests.support.written_job import follow_readme

ROOT = Path(__file__).resolve().parents[2]
TRAINED = 3
"""Commands of the README to run: they make data, train alone and train on a cluster."""


def check_files(dist: Path) -> None:
    """Compare a wheel's files with those of psrt/ in this checkout."""
    (wheel,) = dist.glob("psrt_cluster-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    present = {str(path.relative_to(ROOT)) for path in files_below(ROOT / "psrt")}
    assert packed == present, f"{wheel.name} differs in {sorted(packed ^ present)}"
    assert {"psrt/py.typed", "psrt/cli/templates/ctr_dnn/job.toml"} <= packed
    print(f"{wheel.name}: {len(packed)} files, those of psrt/")


def files_below(directory: Path) -> Iterator[Path]:
    """All files, those behind links to directories as well; the chart is one."""
    for folder, _, names in os.walk(directory, followlinks=True):
        if "__pycache__" not in Path(folder).parts:
            yield from (Path(folder, name) for name in names)


def check_training(venv: Path) -> None:
    """Follow the README of a job that the installed command writes, outside the checkout."""
    programs = venv / "bin"
    with tempfile.TemporaryDirectory() as home:
        own = clean_environment()
        environment = {name: value for name, value in own.items() if name != "PYTHONPATH"}
        check_version(programs, environment, home)
        subprocess.run([programs / "psrt", "init", "job"], cwd=home, env=environment, check=True)
        for said in islice(follow_readme(Path(home, "job"), programs, environment), TRAINED):
            print(said)


def check_version(programs: Path, environment: Mapping[str, str], directory: str) -> None:
    """One version in the module, in the command and in the metadata, none from the checkout."""
    script = (
        "import psrt, importlib.metadata as m;"
        "print(psrt.__file__, psrt.__version__, m.version('psrt-cluster'))"
    )
    python = [programs / "python", "-c", script]
    where, *versions = output_of(python, environment, directory).split()
    said = output_of([programs / "psrt", "--version"], environment, directory).split()[1]
    assert Path(where).is_relative_to(programs.parent), f"psrt was imported from {where}"
    assert set(versions) == {said}, f"psrt version says {said}, module and metadata {versions}"


def output_of(
    command: list[str | os.PathLike[str]], environment: Mapping[str, str], directory: str
) -> str:
    done = subprocess.run(command, cwd=directory, env=environment, stdout=subprocess.PIPE)
    assert done.returncode == 0, f"{command} ended with {done.returncode}"
    return done.stdout.decode()


if __name__ == "__main__":
    {"files": check_files, "training": check_training}[sys.argv[1]](Path(sys.argv[2]).resolve())
