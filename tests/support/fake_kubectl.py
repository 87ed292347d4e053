"""Stands in for kubectl and a cluster: pods are processes of this host, with addresses of loopback.

FAKE_CLUSTER is the directory of its state, FAKE_PROGRAM the command of psrt as JSON. It knows the
commands that the engine `kubernetes` uses, and replaces failed pods as a Job does.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

STATE = Path(os.environ["FAKE_CLUSTER"])
PROGRAM = json.loads(os.environ.get("FAKE_PROGRAM", "[]"))
INDEX = "batch.kubernetes.io/job-completion-index"
ROLE = "app.kubernetes.io/component"
END_S = 20.0
LAST_S = 30.0


def main(words: list[str]) -> int:
    if words[0] == "--namespace":
        words = words[2:]
    if words[0] == "config":
        return 0
    verb, *rest = words
    verbs = {"get": get, "create": create, "apply": create, "logs": logs, "delete": delete}
    return int(verbs[verb](rest) or 0)


def create(words: list[str]) -> int:
    for each in yaml.safe_load_all(sys.stdin.read()):
        kind, name = each["kind"], each["metadata"]["name"]
        path = STATE / f"{kind}.{name}.json"
        if path.exists():
            print(f"Error from server (AlreadyExists): {kind} {name}", file=sys.stderr)
            return 1
        path.write_text(json.dumps(each))
        if kind == "ConfigMap":
            for key, text in each["data"].items():
                job_file = STATE / "job" / key.replace("__", "/")
                job_file.parent.mkdir(parents=True, exist_ok=True)
                job_file.write_text(text)
    for job in objects("Job"):
        if role_of(job) == "pserver":
            start_all(job)
    return 0


def role_of(job: dict[str, Any]) -> str:
    return str(job["spec"]["template"]["metadata"]["labels"][ROLE])


def start_all(job: dict[str, Any]) -> None:
    for index in range(job["spec"]["completions"]):
        start(job, index, 0)


def objects(kind: str) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(STATE.glob(f"{kind}.*.json"))]


def start(job: dict[str, Any], index: int, tries: int) -> None:
    """Start a pod: its directory has `pod.json`, its log, and its exit code once it has ended."""
    template = job["spec"]["template"]
    role = template["metadata"]["labels"][ROLE]
    name = f"{job['metadata']['name']}-{index}-{tries}"
    directory = STATE / "pods" / name
    directory.mkdir(parents=True)
    facts = {
        "name": name,
        "role": role,
        "index": index,
        "job": job["metadata"]["name"],
        "tries": tries,
    }
    container = template["spec"]["containers"][0]
    words = [localized(word) for word in container["args"]]
    arguments = [address(index) if word == "0.0.0.0" else word for word in words]
    if role == "pserver":
        at = arguments.index("--metrics")
        del arguments[at : at + 2]
        arguments += ["--ready-file", str(directory / f"pserver.{index}.ready.json")]
    else:
        arguments[-1:] = ["--trainer-id", str(index), arguments[-1]]
    given = {each["name"]: each["value"] for each in container["env"] if "value" in each}
    given.pop("HOME", None)  # with the kernels of this host
    code = f"{directory}/code"
    line = f'( "$@" 2>&1; echo $? > {code}.part ) | cat > {directory}/log; mv {code}.part {code}'
    process = subprocess.Popen(
        ["sh", "-c", line, "pod", *PROGRAM, *arguments],
        env={**os.environ, **given},
        cwd=STATE / "job",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    facts["group"] = process.pid
    (directory / "pod.json").write_text(json.dumps(facts))


def localized(word: str) -> str:
    word = word.replace("/srv/job", str(STATE / "job"))
    return re.sub(
        r"[a-z-]+-pserver-(\d+)\.[^:,]+:", lambda found: f"{address(int(found[1]))}:", word
    )


def address(index: int) -> str:
    return f"127.0.9.{index + 1}"


def pods() -> list[tuple[Path, dict[str, Any]]]:
    found = sorted((STATE / "pods").glob("*/pod.json"))
    return [(path.parent, json.loads(path.read_text())) for path in found]


def code_of(directory: Path) -> int | None:
    try:
        return int((directory / "code").read_text())
    except FileNotFoundError:
        return None


def get(words: list[str]) -> int:
    if "--output=name" in words:
        for job in objects("Job"):
            print(f"job.batch/{job['metadata']['name']}")
        return 0
    for job in objects("Job"):
        control(job)
    items = [pod_item(*each) for each in pods()]
    items += [job | {"status": job.get("status", {})} for job in objects("Job")]
    print(json.dumps({"kind": "List", "items": items}))
    return 0


def control(job: dict[str, Any]) -> None:
    """Replace failed pods, or give the Job up; pods of a deleted Job are gone once they end."""
    name = job["metadata"]["name"]
    own = [(directory, facts) for directory, facts in pods() if facts["job"] == name]
    if not own:  # trainers of psrt would wait for pservers, those of `fake_psrt` do not
        servers = [directory for directory, facts in pods() if facts["role"] == "pserver"]
        if all(any(directory.glob("*.ready.json")) for directory in servers):
            start_all(job)
        return
    failed = [(d, f) for d, f in own if code_of(d)]
    if len(failed) > job["spec"]["backoffLimit"]:
        reason = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded"}
        job["status"] = {"conditions": [reason]}
        (STATE / f"Job.{name}.json").write_text(json.dumps(job))
        for directory, facts in own:
            if code_of(directory) is None:
                kill(facts["group"], signal.SIGTERM)
        return
    newest = {facts["index"]: (directory, facts) for directory, facts in own}
    for index, (directory, facts) in newest.items():
        if code_of(directory):
            start(job, index, facts["tries"] + 1)


def pod_item(directory: Path, facts: dict[str, Any]) -> dict[str, Any]:
    code = code_of(directory)
    ready = any(directory.glob("*.ready.json")) and code is None
    state: dict[str, Any] = {"running": {}}
    if code is not None:
        finished = f"{(directory / 'code').stat().st_mtime_ns:020}"
        state = {"terminated": {"exitCode": code, "finishedAt": finished}}
    phase = "Running" if code is None else ("Failed" if code else "Succeeded")
    return {
        "kind": "Pod",
        "metadata": {
            "name": facts["name"],
            "labels": {ROLE: facts["role"]},
            "annotations": {INDEX: str(facts["index"])},
            "creationTimestamp": f"{facts['tries']:04}",
        },
        "spec": {"nodeName": address(facts["index"])},
        "status": {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": str(ready)}],
            "containerStatuses": [{"state": state}],
        },
    }


def logs(words: list[str]) -> int:
    directory = STATE / "pods" / words[-1]
    with (directory / "log").open("rb") as log:
        while True:
            is_over = code_of(directory) is not None or not directory.exists()
            while chunk := log.read(65536):
                sys.stdout.buffer.write(chunk)
                sys.stdout.buffer.flush()
            if is_over:
                return 0
            time.sleep(0.05)


def delete(words: list[str]) -> int:
    number = signal.SIGKILL if "--force" in words else signal.SIGTERM
    if words[0] == "job":
        end(words[1], number)
        (STATE / f"Job.{words[1]}.json").unlink(missing_ok=True)
    elif words[0] == "pods":
        (selector,) = [word for word in words if word.startswith("--selector=")]
        end(selector.rpartition("=")[2], number)
    else:
        for each in yaml.safe_load_all(sys.stdin.read()):
            kind, name = each["kind"], each["metadata"]["name"]
            if kind == "Job":
                end(name, signal.SIGTERM)
            (STATE / f"{kind}.{name}.json").unlink(missing_ok=True)
        return wait_for_all()
    return 0


def end(job: str, number: int) -> None:
    for directory, facts in pods():
        if facts["job"] == job and code_of(directory) is None:
            kill(facts["group"], number)


def wait_for_all() -> int:
    deadline_s = time.monotonic() + END_S
    while running := [facts for directory, facts in pods() if code_of(directory) is None]:
        if time.monotonic() > deadline_s:
            for facts in running:
                kill(facts["group"], signal.SIGKILL)
        if time.monotonic() > deadline_s + LAST_S:
            return 1
        time.sleep(0.05)
    return 0


def kill(group: int, number: int) -> None:
    """Signal the process of a pod, not the shell and the pipe that keep its log and exit code."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            words = (path.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(fields[2]) == group and words[0].decode() == PROGRAM[0]:
            os.kill(int(path.parent.name), number)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
