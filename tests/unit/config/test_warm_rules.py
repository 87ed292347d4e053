"""The file of a warm start's rules, and the settings that name it."""

from __future__ import annotations

from pathlib import Path

import pytest

from psrt.config.load import load
from psrt.config.sections import JobConfig, LaunchConfig, TrainerConfig
from psrt.config.warm_rules import read_warm_rules
from psrt.core.errors import ConfigError, ErrorCode
from psrt.core.specs import WarmRule, WarmStart, from_json, to_json
from psrt.launch.plan import Plan
from psrt.trainer.inputs import warm_start_of


def read(directory: Path, text: str) -> tuple[tuple[WarmRule, ...], tuple[str, ...]]:
    path = directory / "rules.toml"
    path.write_text(text)
    return read_warm_rules(str(path))


def test_rules_are_read_in_their_order(tmp_path: Path) -> None:
    rules, unused = read(
        tmp_path,
        'unused = ["a.*"]\n[[rule]]\nparameter = "w"\nfrom = "v"\nstate = "new"\n'
        "[[rule]]\npattern = 'fc_(\\d)'\nfrom = 't\\1'\nresize = true\n"
        '[[rule]]\npattern = ".*"\nskip = true\n',
    )

    assert rules == (
        WarmRule("w", source="v", state="new"),
        WarmRule(r"fc_(\d)", is_pattern=True, source=r"t\1", resize=True),
        WarmRule(".*", is_pattern=True, skip=True),
    )
    assert unused == ("a.*",)
    warm = WarmStart("/cuts", rules, unused, strict=True)
    assert from_json(to_json(warm)) == warm


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[rule", r"rules\.toml: not a TOML file"),
        ("[[rules]]\nparameter = 'w'", "unknown key 'rules'"),
        ("rule = 3", "rule is not a list of tables"),
        ("unused = 'w'", "unused is 'w', expected a list of strings"),
        ("unused = ['(']", r"'\(' is no regular expression"),
        ("[[rule]]\nfrom = 'w'", "rule 1 needs one of parameter and pattern"),
        ("[[rule]]\nparameter = 'w'\npattern = 'w'", "rule 1 needs one of parameter and pattern"),
        ("[[rule]]\nparameter = 'w'\nform = 'v'", "rule 1: unknown key 'form'"),
        ("[[rule]]\nparameter = 'w'\nskip = 1", "skip is 1, expected true or false"),
        ("[[rule]]\nparameter = 'w'\nskip = true\nfrom = 'v'", "its other keys mean nothing"),
        ("[[rule]]\nparameter = 'w'\nstate = 'old'", "state is 'old', expected kept or new"),
        ("[[rule]]\npattern = '('", "is no regular expression"),
        ("[[rule]]\npattern = 'w'\nfrom = 'v\\1'", "its pattern has 0 groups"),
    ],
)
def test_an_illegal_rule_is_named(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        read(tmp_path, text)


def test_a_misspelt_key_has_a_code_of_its_own_and_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        read(tmp_path, "[[rule]]\nparamter = 'w'")
    assert refused.value.code is ErrorCode.CONFIG_UNKNOWN_KEY
    assert "'parameter'" in refused.value.hint


def test_a_file_of_rules_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"none\.toml: cannot be read: No such file"):
        read_warm_rules(str(tmp_path / "none.toml"))


def test_flags_have_precedence_and_paths_of_a_job_are_relative_to_it(tmp_path: Path) -> None:
    job = JobConfig(warm_start="cuts#3", path=str(tmp_path / "job.toml"))

    assert warm_start_of(TrainerConfig(), job) == WarmStart(str(tmp_path / "cuts#3"))
    given = TrainerConfig(warm_start="model", warm_start_strict=True)
    assert warm_start_of(given, job) == WarmStart(str(Path.cwd() / "model"), strict=True)
    url = TrainerConfig(warm_start="s3://bucket/cuts#latest")
    assert warm_start_of(url, job) == WarmStart("s3://bucket/cuts#latest")
    assert warm_start_of(TrainerConfig(), JobConfig()) is None


def test_a_launch_hands_its_warm_start_to_trainers(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text('[job]\nprogram = "p.py"\n')
    flags = {"job": str(job), "warm_start": "cuts", "warm_start_strict": True}

    plan = Plan(load(LaunchConfig, flags=flags, file=str(job), environ={}), {})

    (first, _) = plan.trainers(["a:1"])
    at = first.arguments.index("--warm-start")
    assert first.arguments[at : at + 3] == ("--warm-start", "cuts", "--warm-start-strict")
