"""The how-to pages about cuts name all settings and commands, and pages and code agree."""

from __future__ import annotations

import re
from typing import Any

import psrt
from psrt import layers
from psrt.cli.checkpoint import checkpoint
from psrt.config.sections import PserverConfig
from psrt.config.settings import settings_of
from psrt.config.warm_rules import read_warm_rules
from psrt.core.specs import from_json
from psrt.pserver.checkpoints import files_by_cut
from psrt.storage import json_file
from psrt.storage.directory import contents
from psrt.storage.local_directory import LocalDirectory
from tests.support.cuts import write_cuts
from tests.support.pages import page

TEXT = page("how-to/checkpoint-and-resume.md")
SAVED = page("how-to/use-saved-cuts.md")
FORMAT = page("reference/checkpoint-format.md")


def test_every_setting_of_cuts_is_an_option_of_the_page_with_its_default() -> None:
    rows = re.findall(r"^\| `(--[\w-]+)[^`]*`.*?\| (\S+) \|", TEXT, re.M)

    declared = {
        f"{setting.flag}": str(setting.default or 0) if setting.default != "" else "none"
        for setting in settings_of("pserver", PserverConfig)
        if setting.name.startswith("checkpoint_") or setting.name == "resume"
    }
    shown = {"True": "on", "False": "off"}
    assert dict(rows) == {
        flag: shown.get(default, default.removesuffix(".0")) for flag, default in declared.items()
    }


def test_every_command_is_on_a_page() -> None:
    assert set(re.findall(r"psrt checkpoint (\w+)", TEXT + SAVED)) == set(checkpoint.subcommands)


def test_the_documents_of_a_cut_have_the_members_that_the_reference_names(tmp_path) -> None:
    directory = LocalDirectory(tmp_path)
    write_cuts(directory, 1)

    manifest, part, *_ = (name for name in files_by_cut(directory)[1] if name.endswith(".json"))

    assert members(directory, manifest, "psrt cut") == named("### manifest.json")
    shared = {"job", "round", "step"}
    own = named("### part-0.json") - {"files[].tables", "facts"}
    assert members(directory, part, "psrt cut part") == own | shared


def test_the_rules_of_the_page_are_legal(tmp_path) -> None:
    (rules_text,) = [
        text for text in re.findall(r"```toml\n(.*?)```", SAVED, re.S) if "rule" in text
    ]
    (tmp_path / "rules.toml").write_text(rules_text)

    rules, unused = read_warm_rules(str(tmp_path / "rules.toml"))

    assert [rule.source for rule in rules] == ["embeddings", r"t\1.\2", "", ""]
    assert unused == ("old_tower.*",)


def test_the_python_of_the_page_transpiles_with_a_warm_start() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", SAVED, re.S)
    with psrt.program() as program:
        cost = layers.square_error_cost(
            layers.fc(layers.data("x", (3,)), 1), layers.data("y", (1,))
        )
        psrt.optimizer.Sgd(0.1).minimize(layers.mean(cost))
    known: dict[str, Any] = {"program": program}

    exec(code, known)

    plan = known["transpiler"].get_pserver_program("a:6170").plan
    assert from_json(plan.warm_start) == known["warm_start"]


def members(directory: LocalDirectory, name: str, format_name: str) -> set[str]:
    return set(json_file.decode(name, contents(directory, name), format_name, 1))


def named(heading: str) -> set[str]:
    """The members in the table below a heading of the reference."""
    section = FORMAT.split(f"\n{heading}\n")[1].split("\n#")[0]
    return set(re.findall(r"^\| `([^`]+)` \|", section, re.M))
