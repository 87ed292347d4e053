"""A job with a token and keys: these are in no process list, environment, log, status or report."""

from __future__ import annotations

import json
import signal
import tomllib
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.carriers import eventually
from tests.support.certificates import Authority, flags_of
from tests.support.processes import DEADLINE_S, Running, psrt
from tests.support.small_job import BATCH, lines, write_files

pytestmark = pytest.mark.slow


@dataclass
class SecretJob:
    """A launch whose processes read a token and a key from files."""

    folder: Path
    launch: Running
    secrets: list[str]
    caller: list[str]

    @property
    def facts(self) -> dict[str, str]:
        """The ready file of the pserver."""
        found = self.folder / "logs" / "pserver.0.ready.json"
        eventually(found.exists, "the pserver", DEADLINE_S)
        return dict(json.loads(found.read_text()))

    def logs(self) -> str:
        texts = [path.read_text() for path in (self.folder / "logs").glob("*") if path.is_file()]
        return self.launch.output + "".join(texts)

    def wait_for_training(self) -> None:
        eventually(lambda: "step" in self.logs(), "a step", DEADLINE_S)

    def ask(self, *arguments: str) -> str:
        """The output of a command that proves the token and shows the certificate."""
        with psrt(self.folder / "asked.log", *arguments, *self.caller) as running:
            running.exit_code()
            return running.output


def secrets_of(token: Path, key: Path) -> list[str]:
    """Texts that must be nowhere: the key of the token, and lines of the private key."""
    (known,) = tomllib.loads(token.read_text()).values()
    return [known["key"], *key.read_text().split("\n")[1:4]]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecretJob]:
    folder = tmp_path_factory.mktemp("secrets")
    token, stranger = folder / "token.toml", folder / "stranger.toml"
    for file in (token, stranger):
        made = "token", "create", "cluster", "--scope", "admin", "--file", str(file)
        with psrt(folder / "made.log", *made) as running:
            assert running.exit_code() == 0, running.output
    settings = Authority(folder / "certificates").issue("cluster")
    caller = ["--token-file", str(token), *flags_of(settings)]
    given = " ".join(caller)
    written = write_files(folder / "job", [lines(40 * BATCH, seed=1)], epochs=1_000_000)
    args = "--pserver-args", f"{given} --log-level debug --metrics 127.0.0.1:0"
    args = *args, "--trainer-args", f"{given} --log-level debug"
    size = "--pservers", "1", "--trainers", "1", "--log-dir", str(folder / "logs")
    # Forked processes would show the command line of the one that they come from.
    words = "launch", str(written), *size, *args
    with psrt(folder / "launch.log", *words, is_forked=False) as launch:
        found = SecretJob(folder, launch, secrets_of(token, Path(settings.key)), caller)
        found.wait_for_training()
        refused = [*found.caller]
        refused[1] = str(stranger)
        with psrt(folder / "refused.log", "status", found.facts["endpoint"], *refused) as running:
            assert running.exit_code() != 0
        yield found
        launch.process.send_signal(signal.SIGINT)
        launch.exit_code()


def children_of(parent: int) -> list[int]:
    found = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(pid) for pid in found]


@contextmanager
def free_of(secrets: list[str], where: str) -> Iterator[list[str]]:
    """Texts added to the list have no secret; there is something in them."""
    texts: list[str] = []
    yield texts
    whole = "\n".join(texts)
    assert whole.strip(), where
    assert [secret for secret in secrets if secret in whole] == [], where


@pytest.mark.parametrize("name", ["cmdline", "environ"])
def test_no_process_shows_a_secret(job: SecretJob, name: str) -> None:
    pids = [job.launch.process.pid, *children_of(job.launch.process.pid)]
    assert len(pids) >= 3

    with free_of(job.secrets, name) as texts:
        texts += [Path(f"/proc/{pid}/{name}").read_text() for pid in pids]


def test_no_log_has_a_secret(job: SecretJob) -> None:
    refused = (job.folder / "refused.log").read_text()
    assert "Token" in refused

    with free_of(job.secrets, "logs") as texts:
        texts += [job.logs(), refused]


def test_no_status_has_a_secret(job: SecretJob) -> None:
    facts = job.facts
    pages = "status.json", "metrics", "healthz", "readyz"

    with free_of(job.secrets, "status") as texts:
        texts += [job.ask("status", facts["endpoint"], "--json"), json.dumps(facts)]
        for page in pages:
            with urllib.request.urlopen(f"http://{facts['metrics']}/{page}") as opened:
                texts.append(opened.read().decode())


def test_no_report_has_a_secret(job: SecretJob) -> None:
    report = job.ask("doctor", job.facts["endpoint"], "--dump")
    assert "psrt/pserver/process" in report

    with free_of(job.secrets, "report") as texts:
        texts.append(report)
