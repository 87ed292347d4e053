"""Faults planted for real, one at a time: `psrt doctor` names each, its place and its remedy.

A fault of the host is planted for the doctor's process alone; that of a job in real pservers.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import grpc
import numpy as np
import pytest

from psrt.core import specs
from psrt.rpc import pb
from psrt.rpc.client import Client
from psrt.rpc.methods import Method
from psrt.rpc.wire import PUSH_DENSE
from tests.support import planted_hosts
from tests.support.certificates import Authority, flags_of
from tests.support.frozen import block_of
from tests.support.planted_hosts import control_group, mounted, with_disk, with_file, within
from tests.support.processes import ROOT, clean_environment, psrt
from tests.support.pserver import (
    AT_ONCE,
    CALL_TIMEOUT_S,
    TABLE,
    DaemonProcess,
    daemon,
    joined,
    register,
)
from tests.support.saved_cuts import cut_of_pservers

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1")
DEADLINE_S = 60.0
"""Generous: an idle host takes less than ten seconds, a busy one starts processes slowly. A test
records the seconds that it took."""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.getuid() != 0, reason="needs root to plant faults"),
]


@dataclass
class Planted:
    """A fault that is there: how to ask the doctor, and the finding to expect."""

    where: str
    arguments: Sequence[str] = ()
    prefix: Sequence[str] = ()
    variables: tuple[tuple[str, str], ...] = ()


Stage = Callable[[Path, ExitStack], Planted]
FAULTS: dict[str, tuple[Stage, str]] = {}
"""Stage by the name of the finding, and words of the remedy."""
SHORT = ("open-files", "dev-shm", "directory", "torn-cut", "another-server: gRPC", "hung")
SHORT += ("port-closed", "encryption", "missing-trainer", "silent-trainer", "different-jobs")
"""Those that are planted by default: the others take as long, and differ in one check."""
HERE = "this host"


def fault(name: str, remedy: str) -> Callable[[Stage], Stage]:
    def register_stage(stage: Stage) -> Stage:
        FAULTS[name] = stage, remedy
        return stage

    return register_stage


def needs(program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"needs {program}")


def needs_group(controller: str) -> None:
    if not (planted_hosts.GROUPS / controller / "cgroup.procs").exists():
        pytest.skip(f"needs control groups of version 1 ({controller})")


# --- the host ------------------------------------------------------------------------------------


@fault("open-files", "LimitNOFILE=")
def few_files(folder: Path, stack: ExitStack) -> Planted:
    return Planted(HERE, prefix=["prlimit", "--nofile=1024"])


@fault("memory-limit", "MemoryMax=")
def a_small_group(folder: Path, stack: ExitStack) -> Planted:
    needs_group("memory")
    limits = {"memory__limit_in_bytes": str(900 << 20)}
    return Planted(HERE, prefix=within(stack.enter_context(control_group("memory", **limits))))


@fault("cpu-quota", "CPUQuota=")
def few_cores(folder: Path, stack: ExitStack) -> Planted:
    needs_group("cpu")
    quota_us = str(int(((os.cpu_count() or 1) - 0.75) * 100_000))
    limits = {"cpu__cfs_period_us": "100000", "cpu__cfs_quota_us": quota_us}
    return Planted(HERE, prefix=within(stack.enter_context(control_group("cpu", **limits))))


@fault("blas-threads", "Unset OPENBLAS_NUM_THREADS")
def many_threads(folder: Path, stack: ExitStack) -> Planted:
    return Planted(HERE, variables=(("OMP_NUM_THREADS", "4096"),))


@fault("huge-pages", "echo madvise >")
def small_pages(folder: Path, stack: ExitStack) -> Planted:
    file = "/sys/kernel/mm/transparent_hugepage/enabled"
    return Planted(HERE, prefix=with_file(file, "always madvise [never]\n", folder))


@fault("dev-shm", "--shm-size")
def a_small_shm(folder: Path, stack: ExitStack) -> Planted:
    return Planted(HERE, prefix=mounted("mount -t tmpfs -o size=64m tmpfs /dev/shm"))


@fault("kernel-cache", "Set cache_dir")
def an_open_cache(folder: Path, stack: ExitStack) -> Planted:
    place = folder / "kernels"
    place.mkdir()
    place.chmod(0o777)
    return Planted(HERE, ["--cache-dir", str(place)])


@fault("directory", "owner and mode")
def a_directory_to_read_only(folder: Path, stack: ExitStack) -> Planted:
    place = folder / "cuts"
    return Planted(str(place), ["--checkpoint-dir", str(place)], with_disk(place, "ro,size=2g"))


@fault("disk-space", "psrt checkpoint prune")
def a_full_disk(folder: Path, stack: ExitStack) -> Planted:
    place = folder / "cuts"
    return Planted(str(place), ["--checkpoint-dir", str(place)], with_disk(place, "size=4m"))


@fault("slow-disk", "faster fsync")
def a_slow_disk(folder: Path, stack: ExitStack) -> Planted:
    needs("strace")
    prefix = planted_hosts.with_slow_sync(120)
    return Planted(str(folder), ["--checkpoint-dir", str(folder)], prefix)


@fault("torn-cut", "Resume from cut 1")
def a_torn_cut(folder: Path, stack: ExitStack) -> Planted:
    cuts = folder / "cuts"
    for number in (1, 2):
        cut_of_pservers(cuts, [block_of(TABLE)], number=number)
    arrays = cuts / "cut-00000002" / "part-0" / "dense.arrays"
    whole = arrays.read_bytes()
    arrays.write_bytes(whole[: len(whole) // 2] + bytes(len(whole) // 2))
    return Planted(str(cuts), ["--checkpoint-dir", str(cuts)])


# --- a pserver that does not answer --------------------------------------------------------------


@fault("dns", "/etc/hosts or DNS")
def no_address(folder: Path, stack: ExitStack) -> Planted:
    return asked("no-such-host.invalid:6170")


@fault("port-closed", "Start the pserver")
def nothing_listens(folder: Path, stack: ExitStack) -> Planted:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return asked(endpoint_of(listener))


@fault("no-route", "firewall")
def a_port_that_drops(folder: Path, stack: ExitStack) -> Planted:
    """A queue of connections that is full: the kernel drops what is sent, as a firewall does."""
    listener = stack.enter_context(socket.socket())
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    for _ in range(3):
        waiting = stack.enter_context(socket.socket())
        waiting.setblocking(False)
        waiting.connect_ex(listener.getsockname())
    return asked(endpoint_of(listener))


@fault("another-server", "ready on")
def a_web_server(folder: Path, stack: ExitStack) -> Planted:
    serve = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    server = stack.enter_context(http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    stack.callback(server.shutdown)
    return asked(endpoint_of(server.socket))


@fault("another-server: gRPC", "ready on")
def a_grpc_server(folder: Path, stack: ExitStack) -> Planted:
    server = grpc.server(ThreadPoolExecutor(1))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    stack.callback(server.stop, 0)
    return asked(f"127.0.0.1:{port}")


@fault("another-server: a data port", "ready on")
def a_data_port(folder: Path, stack: ExitStack) -> Planted:
    pserver = stack.enter_context(daemon(folder))
    return asked(pserver.facts["data_endpoints"][0])


@fault("hung", "psrt doctor --dump")
def a_stopped_pserver(folder: Path, stack: ExitStack) -> Planted:
    pserver = stack.enter_context(daemon(folder))
    pserver.process.send_signal(signal.SIGSTOP)
    return asked(pserver.endpoint)


@fault("dns-differs", "so that the name has one address")
def a_name_of_two_hosts(folder: Path, stack: ExitStack) -> Planted:
    port = stack.enter_context(daemon(folder)).endpoint.rpartition(":")[2]
    hosts = "127.0.0.1 localhost\n127.0.0.1 host-a\n127.0.0.9 host-a\n"
    planted = asked(f"host-a:{port}")
    return replace(planted, prefix=with_file("/etc/hosts", hosts, folder))


@fault("encryption", "tls_ca")
def a_pserver_that_encrypts(folder: Path, stack: ExitStack) -> Planted:
    settings = Authority(folder / "certificates").issue("pserver")
    return asked(stack.enter_context(daemon(folder, *flags_of(settings))).endpoint)


@fault("certificate", "until when it is valid")
def an_expired_certificate(folder: Path, stack: ExitStack) -> Planted:
    authority = Authority(folder / "certificates")
    expired = authority.issue("pserver", until=datetime(2020, 1, 1, tzinfo=UTC))
    pserver = stack.enter_context(daemon(folder, *flags_of(expired)))
    return asked(pserver.endpoint, *flags_of(authority.issue("caller")))


@fault("token", "--token-file")
def a_wrong_token(folder: Path, stack: ExitStack) -> Planted:
    for name in ("known", "stranger"):
        flags = "--scope", "admin", "--file", str(folder / f"{name}.toml")
        with psrt(folder / "made.log", "token", "create", name, *flags) as made:
            assert made.exit_code() == 0, made.output
    pserver = stack.enter_context(daemon(folder, "--token-file", str(folder / "known.toml")))
    return asked(pserver.endpoint, "--token-file", str(folder / "stranger.toml"))


# --- a job ---------------------------------------------------------------------------------------


@fault("versions", "Install one release")
def another_release(folder: Path, stack: ExitStack) -> Planted:
    (folder / "sitecustomize.py").write_text("import psrt\npsrt.__version__ = '0.0.1'\n")
    paths = f"{folder}:{ROOT}"
    pserver = stack.enter_context(daemon(folder, is_forked=False, PYTHONPATH=paths))
    return asked(pserver.endpoint)


@fault("clock", "chrony")
def a_clock_ahead(folder: Path, stack: ExitStack) -> Planted:
    if not FAKETIME.exists():
        pytest.skip("needs libfaketime")
    fake = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": "+1h", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    return asked(stack.enter_context(daemon(folder, is_forked=False, **fake)).endpoint)


@fault("pserver-memory", "Resume with more pservers")
def a_pserver_at_its_limit(folder: Path, stack: ExitStack) -> Planted:
    needs_group("memory")
    group = stack.enter_context(control_group("memory"))
    pserver = stack.enter_context(daemon(folder))
    pid = pserver.facts["pid"]
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    limit_bytes = int(pages * os.sysconf("SC_PAGE_SIZE") * 1.05)
    (group / "memory.limit_in_bytes").write_text(str(limit_bytes))
    (group / "cgroup.procs").write_text(str(pid))
    return asked(pserver.endpoint)


@fault("plan-memory", "psrt plan --size")
def a_job_that_is_too_large(folder: Path, stack: ExitStack) -> Planted:
    (folder / "program.py").write_text(PROGRAM)
    job = folder / "job.toml"
    job.write_text('[job]\nname = "large"\nprogram = "program.py"\n[data]\ntrain = []\n')
    return asked(stack.enter_context(daemon(folder)).endpoint, "--job", str(job))


@fault("missing-trainer", "--trainer-id")
def a_missing_trainer(folder: Path, stack: ExitStack) -> Planted:
    pserver = stack.enter_context(daemon(folder))
    stack.callback(joined(pserver.endpoint, trainers=2).close)
    return asked(pserver.endpoint)


@fault("silent-trainer", "kill -QUIT")
def a_trainer_that_no_round_hears_from(folder: Path, stack: ExitStack) -> Planted:
    pserver = stack.enter_context(daemon(folder))
    clients = [joined(pserver.endpoint, trainer, trainers=2) for trainer in (0, 1)]
    pushing = threading.Thread(target=push_until_closed, args=[clients[0]], daemon=True)
    pushing.start()
    for client in clients:
        stack.callback(client.close)
    return asked(pserver.endpoint, "--silent-s", "0")  # any silence is named


@fault("slow-pserver", "psrt plan")
def a_slow_pserver(folder: Path, stack: ExitStack) -> Planted:
    needs_group("cpu")
    pservers = [stack.enter_context(named_daemon(folder, name)) for name in ("fast", "slow")]
    clients = [joined_dense(each.endpoint) for each in pservers]
    for client in clients:
        stack.callback(client.close)
        push_dense(client)  # compiles
    limits = {"cpu__cfs_period_us": "100000", "cpu__cfs_quota_us": "2000"}
    group = stack.enter_context(control_group("cpu", **limits))
    (group / "cgroup.procs").write_text(str(pservers[1].facts["pid"]))
    for _ in range(PUSHES):
        for client in clients:
            push_dense(client)
    (group.parent / "cgroup.procs").write_text(str(pservers[1].facts["pid"]))
    planted = asked(pservers[1].endpoint)
    return replace(planted, arguments=[each.endpoint for each in pservers])


@fault("different-jobs", "the same job file")
def two_jobs(folder: Path, stack: ExitStack) -> Planted:
    pservers = [stack.enter_context(named_daemon(folder, name)) for name in ("one", "two")]
    for each, plan in zip(pservers, ("plan", "another"), strict=True):
        hello = pb.Hello(job_id="job", plan_hash=plan, trainers=1, mode=specs.to_json(ASYNC))
        client = Client(each.endpoint, 0, 7, "stream", hello, retry=AT_ONCE)
        client.connect(CALL_TIMEOUT_S)
        stack.callback(client.close)
    return Planted("the pservers", [each.endpoint for each in pservers])


# --- stages --------------------------------------------------------------------------------------

ASYNC = specs.Async()
PUSHES, FLOATS = 6, 1 << 20
DENSE = replace(TABLE, shape=(FLOATS,), size=FLOATS, optimizer=specs.Ftrl(lr_power=-0.3))
PROGRAM = """
import psrt
from psrt import layers

def build():
    ids = layers.data("ids", shape=(4,), dtype="int64")
    click = layers.data("click", shape=(1,))
    rows = layers.embedding(ids, (4_000_000_000_000, 64), is_distributed=True)
    logit = layers.fc(layers.reshape(rows, (-1, 256)), 1)
    loss = layers.mean(layers.sigmoid_cross_entropy_with_logits(logit, click))
    return psrt.Model(loss, optimizer=psrt.optimizer.Adam(learning_rate=0.1))
"""


def asked(endpoint: str, *arguments: str) -> Planted:
    return Planted(endpoint, [endpoint, *arguments])


def endpoint_of(listener: socket.socket) -> str:
    return f"127.0.0.1:{listener.getsockname()[1]}"


def named_daemon(folder: Path, name: str) -> contextlib.AbstractContextManager[DaemonProcess]:
    place = folder / name
    place.mkdir()
    return daemon(place)


def push_until_closed(client: Client) -> None:
    header = pb.Header(push_key=client.next_push_key())
    header.parts.add(kind=PUSH_DENSE, table="w")
    with contextlib.suppress(Exception):
        tensors = [np.ones(4, np.float32)]
        client.call(Method.EXCHANGE, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)


def joined_dense(endpoint: str) -> Client:
    hello = pb.Hello(job_id="job", plan_hash="plan", trainers=1, mode=specs.to_json(ASYNC))
    client = Client(endpoint, 0, 7, "stream", hello, retry=AT_ONCE)
    client.connect(CALL_TIMEOUT_S)
    register(client, DENSE)
    return client


def push_dense(client: Client) -> None:
    header = pb.Header(push_key=client.next_push_key())
    header.parts.add(kind=PUSH_DENSE, table="w")
    tensors = [np.ones(FLOATS, np.float32)]
    client.call(Method.PUSH, header=header, tensors=tensors, timeout_s=CALL_TIMEOUT_S)


# --- the doctor ----------------------------------------------------------------------------------


def examined(planted: Planted) -> tuple[set[tuple[str, str]], dict[str, str], float]:
    """Names and places of the findings, remedies by name, and seconds that it took."""
    words = [*planted.prefix, sys.executable, "-m", "psrt", "doctor", *planted.arguments]
    started_s = time.monotonic()
    ran = subprocess.run(
        [*words, "--json"],
        cwd=ROOT,
        env=clean_environment() | dict(planted.variables),
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert ran.returncode in (0, 1), ran.stderr
    found = json.loads(ran.stdout)
    names = {(each["name"], each["where"]) for each in found}
    remedies = {each["name"]: each["remedy"] for each in found}
    return names, remedies, time.monotonic() - started_s


@pytest.fixture(scope="module")
def usual() -> set[tuple[str, str]]:
    """The findings of this host as it is."""
    return examined(Planted(HERE))[0]


@pytest.mark.parametrize(
    "name",
    [each if each in SHORT else pytest.param(each, marks=pytest.mark.long) for each in FAULTS],
)
def test_a_planted_fault_is_named_with_its_place_and_remedy(
    tmp_path: Path, usual: set[tuple[str, str]], name: str, record_property: Callable[..., None]
) -> None:
    stage, remedy = FAULTS[name]
    with ExitStack() as stack:
        planted = stage(tmp_path, stack)
        found, remedies, took_s = examined(planted)
    record_property("seconds", round(took_s, 1))
    finding = name.partition(":")[0]

    assert found - usual == {(finding, planted.where)}
    assert remedy in remedies[finding]
