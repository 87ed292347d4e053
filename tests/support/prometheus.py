"""Prometheus and Alertmanager on free ports of 127.0.0.1, and a receiver of alerts."""

from __future__ import annotations

import contextlib
import http.server
import json
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.carriers import eventually
from tests.support.live_pservers import free_port

PROGRAMS = ("prometheus", "prometheus-alertmanager")
SECONDS = 120.0


def missing() -> str:
    """Names of the programs that are not installed."""
    return ", ".join(each for each in PROGRAMS if shutil.which(each) is None)


@dataclass
class Watching:
    """A Prometheus that scrapes, and the alerts that Alertmanager has sent on."""

    endpoint: str
    alerts: list[dict[str, Any]] = field(default_factory=list)

    def ask(self, path: str, **arguments: str) -> Any:
        """The data of a call of the API."""
        query = urllib.parse.urlencode(arguments)
        with urllib.request.urlopen(f"http://{self.endpoint}/api/v1/{path}?{query}") as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def values(self, expression: str) -> dict[str, float]:
        """Instance → value of an expression at this moment."""
        found = self.ask("query", query=expression)["result"]
        return {each["metric"].get("instance", ""): float(each["value"][1]) for each in found}

    def fired(self, name: str) -> set[str]:
        """Instances for which an alert has been received."""
        labels = [alert["labels"] for alert in self.alerts if alert["status"] == "firing"]
        return {each["instance"] for each in labels if each["alertname"] == name}


@contextlib.contextmanager
def prometheus(folder: Path, targets: Sequence[str], rules: str) -> Iterator[Watching]:
    """Scrape and evaluate once a second; alerts go by way of an Alertmanager."""
    with ExitStack() as stack:
        watching = Watching(f"127.0.0.1:{free_port()}")
        receiver = stack.enter_context(_receiver(watching))
        manager = f"127.0.0.1:{free_port()}"
        _write(folder, targets, rules, manager, receiver)
        for command in _commands(folder, watching.endpoint, manager):
            stack.enter_context(_running(folder, command))
        eventually(lambda: _is_ready(watching.endpoint), "Prometheus", SECONDS)
        eventually(lambda: _is_ready(manager), "Alertmanager", SECONDS)
        yield watching


def _write(folder: Path, targets: Sequence[str], rules: str, manager: str, receiver: str) -> None:
    (folder / "rules.yml").write_text(rules)
    configuration = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
        "scrape_configs": [{"job_name": "psrt", "static_configs": [{"targets": list(targets)}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(configuration))  # JSON is YAML
    route = {"receiver": "test", "group_wait": "0s", "group_interval": "1s"}
    hook = {"url": f"http://{receiver}/", "send_resolved": False}
    alerting = {"route": route, "receivers": [{"name": "test", "webhook_configs": [hook]}]}
    (folder / "alertmanager.yml").write_text(json.dumps(alerting))


def _commands(folder: Path, endpoint: str, manager: str) -> list[list[str]]:
    return [
        [
            "prometheus",
            f"--config.file={folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={folder / 'prometheus'}",
            f"--web.listen-address={endpoint}",
        ],
        [
            "prometheus-alertmanager",
            f"--config.file={folder / 'alertmanager.yml'}",
            f"--storage.path={folder / 'alertmanager'}",
            f"--web.listen-address={manager}",
            "--cluster.listen-address=",
        ],
    ]


@contextlib.contextmanager
def _running(folder: Path, command: Sequence[str]) -> Iterator[None]:
    with (folder / f"{command[0]}.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder)
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextlib.contextmanager
def _receiver(watching: Watching) -> Iterator[str]:
    class Post(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            watching.alerts += json.loads(body)["alerts"]
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Post)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _is_ready(endpoint: str) -> bool:
    try:
        with urllib.request.urlopen(f"http://{endpoint}/-/ready") as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
