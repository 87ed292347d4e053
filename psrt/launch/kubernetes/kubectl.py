"""Commands of kubectl, which has the cluster, the credentials and the namespace of its user."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

from psrt.core.errors import ConfigError, JobError
from psrt.launch.processes import die_with_parent

_CHUNK_BYTES = 65536
_COMMAND_S = 120.0


class Kubectl:
    """kubectl for one namespace, empty = that of its context."""

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace or self._own_namespace()

    def run(self, *words: str, given: str = "") -> str:
        """Run a command to its end and return its output; raises `JobError` with its words."""
        command = ["kubectl", "--namespace", self.namespace, *words]
        return _output(command, given)

    def follow(self, *words: str) -> Followed:
        """Start a command whose output is followed."""
        return Followed(["kubectl", "--namespace", self.namespace, *words])

    def _own_namespace(self) -> str:
        words = "kubectl", "config", "view", "--minify", "--output", "jsonpath={..namespace}"
        return _output(words, "") or "default"


class Followed:
    """A command that runs while its output is read; it ends with this process."""

    def __init__(self, command: Sequence[str]) -> None:
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
            preexec_fn=die_with_parent,
        )
        assert self._popen.stdout is not None
        self._stdout = self._popen.stdout
        os.set_blocking(self.fileno(), False)
        self.text = b""

    def fileno(self) -> int:
        return self._stdout.fileno()

    def read(self) -> bytes | None:
        """Return what has arrived, None at the end."""
        try:
            return os.read(self.fileno(), _CHUNK_BYTES) or None
        except BlockingIOError:
            return b""

    def close(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self._popen.wait()
        self._stdout.close()


def _output(command: Sequence[str], given: str) -> str:
    try:
        done = subprocess.run(
            command, input=given, capture_output=True, text=True, timeout=_COMMAND_S, check=False
        )
    except FileNotFoundError as error:
        raise ConfigError(
            "--on kubernetes needs kubectl, which is not on the PATH; nothing was started.",
            hint="Install kubectl; or let --dry-run print the manifests, and apply them elsewhere.",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise JobError(f"`{' '.join(command)}` took longer than {_COMMAND_S:g} s.") from error
    if done.returncode:
        raise JobError(
            f"`{' '.join(command)}` failed: {done.stderr.strip()}",
            hint="`kubectl get pods` must work, with rights to create and delete what the chart "
            "has: psrt launch --on kubernetes --dry-run prints it.",
        )
    return done.stdout
