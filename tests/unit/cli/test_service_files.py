"""The files of systemd in `deploy`, and the examples of settings that a service begins with."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from psrt.cli.service.rendering import EXAMPLES, TEMPLATES, InstallTarget, files
from psrt.config.load import load
from psrt.config.sections import PserverConfig, TrainerConfig

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "deploy" / "systemd"
ROLES = {"pserver": PserverConfig, "trainer": TrainerConfig}


def test_deploy_has_the_files_of_the_package_and_no_others() -> None:
    found = {path.name: path.resolve() for path in DEPLOY.iterdir() if path.name != "README.md"}

    assert found == {path.name: path for path in TEMPLATES.iterdir()}


def test_the_readme_of_deploy_names_each_file() -> None:
    text = (DEPLOY / "README.md").read_text()

    assert [path.name for path in TEMPLATES.iterdir() if f"`{path.name}`" not in text] == []


def test_each_template_is_installed() -> None:
    texts = set(files(InstallTarget(), "/usr/bin/psrt").values())

    assert {path.name for path in TEMPLATES.iterdir() if path.read_text() not in texts} == set()


@pytest.mark.parametrize("role", ROLES)
def test_variables_of_an_example_are_settings(role: str) -> None:
    text = (TEMPLATES / f"{role}.env.example").read_text()
    lines = re.findall(r"^#?(PSRT_\w+)=(.+)$", text, re.M)
    assert lines

    origins = load(ROLES[role], flags={}, environ=dict(lines)).origins.values()

    assert {name for name, _ in lines} <= {word for each in origins for word in each.split()}


def test_settings_of_the_example_are_accepted(tmp_path: Path) -> None:
    text = (TEMPLATES / "psrt.toml.example").read_text()
    file = tmp_path / "psrt.toml"
    file.write_text(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.M))

    pserver = load(PserverConfig, flags={}, environ={"PSRT_CONFIG": str(file)}, with_host=True)
    trainer = load(TrainerConfig, flags={}, environ={"PSRT_CONFIG": str(file)}, with_host=True)

    assert pserver.config.checkpoint_every_s == 300
    assert trainer.config.endpoints == ("host-a:6170", "host-b:6170")


def test_examples_of_a_package_are_no_settings() -> None:
    paths = files(InstallTarget(prefix="/usr"), "/usr/bin/psrt")

    assert {Path("/usr/share/psrt", place) for place in EXAMPLES.values()} < set(paths)
