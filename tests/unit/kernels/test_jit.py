"""The compile policy: one signature, any thread, any process, no way to break a start."""

from __future__ import annotations

import fcntl
import importlib
import logging
import os
import pkgutil
import shutil
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import IndexDataCacheFile

import psrt.kernels
from psrt.kernels import cache, jit
from psrt.kernels.jit import Kernel

AXPY = "f4[::1], f4, const f4[::1] -> void"


def axpy(out, factor, x):
    for i in range(len(out)):
        out[i] += factor * x[i]


def scaled(out, factor, x):
    for i in range(len(out)):
        out[i] = factor * x[i]


def allocating(out, factor, x):
    out[:] = np.zeros(3, np.float32)


@jit.device
def added(total, factor, x):
    return total + factor * x


def axpy_of_device(out, factor, x):
    for i in range(len(out)):
        out[i] = added(out[i], factor, x[i])


def fresh(function=axpy) -> Kernel:
    return Kernel(function, AXPY, frozenset({"tests"}))


def check(kernel: Kernel) -> None:
    out = np.ones(3, np.float32)
    kernel(out, 2.0, np.arange(3, dtype=np.float32))
    np.testing.assert_array_equal(out, [1, 3, 5])


@pytest.fixture
def cache_dir(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(cache, "_root", tmp_path)
    return tmp_path


def compiled_names(*kernels: Kernel) -> list[str]:
    names: list[str] = []
    for kernel in kernels:
        kernel.load(names.append)
    return names


def test_read_only_and_writable_inputs_share_one_compiled_version(cache_dir):
    kernel = fresh()
    x = np.arange(3, dtype=np.float32)
    check(kernel)
    x.flags.writeable = False

    kernel(np.ones(3, np.float32), 2.0, x)

    assert len(kernel.dispatcher.signatures) == 1


def test_dispatchers_are_made_by_a_process_that_needs_them(cache_dir):
    first, again, unused = (fresh(axpy_of_device) for _ in range(3))
    check(first)
    assert vars(added).pop("dispatcher").signatures

    check(again)

    assert "dispatcher" not in vars(added)
    assert "dispatcher" not in vars(unused)


@pytest.mark.parametrize("factor", [2, 2.0, np.float32(2), np.float64(2), np.int64(2)])
def test_scalars_of_any_kind_are_cast_without_a_second_version(cache_dir, factor):
    kernel = fresh()
    out = np.ones(2, np.float32)

    kernel(out, factor, np.ones(2, np.float32))

    assert out.tolist() == [3, 3]
    assert len(kernel.dispatcher.signatures) == 1


@pytest.mark.parametrize(
    "x", [np.ones(3), np.ones((3, 1), np.float32), np.ones(6, np.float32)[::2], [1.0, 2.0, 3.0]]
)
def test_array_of_another_type_shape_or_layout_is_a_type_error(cache_dir, x):
    with pytest.raises(TypeError, match="No matching definition"):
        fresh()(np.ones(3, np.float32), 1.0, x)


def test_read_only_array_is_refused_where_the_kernel_writes(cache_dir):
    out = np.ones(3, np.float32)
    out.flags.writeable = False

    with pytest.raises(TypeError, match="No matching definition"):
        fresh()(out, 1.0, np.ones(3, np.float32))


def test_kernel_that_allocates_does_not_compile(cache_dir):
    with pytest.raises(numba.core.errors.TypingError):
        fresh(allocating).load()


@pytest.mark.parametrize("text", ["f4[::1]", "f3 -> void", "const -> void", "f4[::1 -> void"])
def test_unreadable_signature_is_a_value_error(text):
    with pytest.raises(ValueError, match="kernel signature"):
        jit.parse_signature(text)


def test_signature_knows_shapes_layouts_and_read_only_inputs():
    parsed = jit.parse_signature("const f4[:, ::1], i8[:, :], b1 -> f8")

    first, second, third = parsed.args
    assert (first.ndim, first.layout, first.mutable) == (2, "C", False)
    assert (second.ndim, second.layout, second.mutable) == (2, "A", True)
    assert (third, parsed.return_type) == (numba.types.boolean, numba.types.float64)


def test_second_start_finds_the_code_of_the_first_in_the_cache(cache_dir):
    cold, warm = compiled_names(fresh()), compiled_names(fresh())

    assert cold == ["test_jit.axpy"]
    assert warm == []


def test_warm_up_loads_the_kernels_of_its_groups_only(cache_dir, monkeypatch):
    mine, other = fresh(), Kernel(axpy, AXPY, frozenset({"other"}))
    monkeypatch.setattr(jit, "_registry", [mine, other])

    seconds = jit.warm_up(["tests"])

    assert seconds > 0
    assert (mine.ready, other.ready) == (True, False)


@pytest.mark.parametrize("content", [b"", b"garbage\n", b"I1\n.", b"(lp0\n."])
@pytest.mark.parametrize("kind", ["index", "code"])
def test_damaged_cache_entry_is_compiled_and_stored_anew(cache_dir, kind, content):
    fresh().load()
    for entry in cache_dir.rglob({"index": "*.nbi", "code": "*.nbc"}[kind]):
        entry.write_bytes(content)

    check(fresh())

    again = fresh()
    check(again)
    assert sum(again.dispatcher.stats.cache_hits.values()) == 1


def test_kernel_that_cannot_be_stored_runs_all_the_same(cache_dir, monkeypatch, caplog):
    def disk_is_full(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr(IndexDataCacheFile, "_save_index", disk_is_full)

    check(fresh())

    assert "holds no usable" in caplog.text


def test_a_directory_that_cannot_be_written_is_read(cache_dir, monkeypatch, caplog):
    fresh().load()
    (cache.directory() / "lock").unlink()
    monkeypatch.setattr(cache.os, "access", lambda path, mode: mode != os.W_OK)

    check(found := fresh())
    fresh(scaled).load()

    assert sum(found.dispatcher.stats.cache_hits.values()) == 1
    assert not (cache.directory() / "lock").exists()
    assert len(list(cache.directory().rglob("*.nbi"))) == 1
    assert caplog.text == ""


def test_machine_code_for_a_named_cpu_is_found_on_every_host(monkeypatch):
    found = []
    for features in ("+avx2", "+avx512f"):
        monkeypatch.setattr(cache.llvm, "get_host_cpu_features", lambda f=features: FeatureMap(f))
        found.append(cache.fingerprint.__wrapped__())
    monkeypatch.setattr(numba.config, "CPU_NAME", "x86-64-v3")
    monkeypatch.setattr(numba.config, "CPU_FEATURES", "")
    named = cache.fingerprint.__wrapped__()

    assert found[0] != found[1]
    assert "-x86-64-v3-" in named
    monkeypatch.setattr(cache.llvm, "get_host_cpu_features", lambda: FeatureMap("+avx2"))
    assert cache.fingerprint.__wrapped__() == named


class FeatureMap:
    def __init__(self, text):
        self._text = text

    def flatten(self):
        return self._text


def test_cache_directory_that_cannot_be_made_is_reported_and_done_without(
    cache_dir, monkeypatch, caplog
):
    (cache_dir / "file").write_text("not a directory")
    monkeypatch.setattr(cache, "_root", cache_dir / "file")

    with caplog.at_level(logging.WARNING):
        check(fresh())

    assert "out of use" in caplog.text


def test_cache_directory_that_others_may_write_to_is_done_without(cache_dir, caplog):
    cache.directory().mkdir()
    cache.directory().chmod(0o777)

    with caplog.at_level(logging.WARNING, "psrt.kernels"):
        check(fresh())

    assert "other users may write to" in caplog.text
    assert not list(cache.directory().rglob("*.nbi"))


def test_cache_directory_of_another_user_is_done_without(cache_dir, monkeypatch, caplog):
    monkeypatch.setattr(cache.os, "getuid", lambda: cache_dir.stat().st_uid + 1)
    os.chown(cache_dir, 4321, -1) if os.geteuid() == 0 else None

    with caplog.at_level(logging.WARNING, "psrt.kernels"):
        check(fresh())

    assert "owns it" in caplog.text


def test_lock_held_too_long_by_another_is_done_without(cache_dir, monkeypatch, caplog):
    monkeypatch.setattr(cache, "LOCK_TIMEOUT_S", 0.0)

    with cache._locked(cache.directory(), fcntl.LOCK_EX), caplog.at_level(logging.WARNING):
        check(fresh())

    assert "out of use" in caplog.text


def test_several_processes_load_at_the_same_time(cache_dir, monkeypatch):
    fresh().load()
    monkeypatch.setattr(cache, "LOCK_TIMEOUT_S", 0.0)

    with cache._locked(cache.directory(), fcntl.LOCK_SH):
        check(found := fresh())

    assert sum(found.dispatcher.stats.cache_hits.values()) == 1


def test_an_index_without_its_entry_is_completed_under_the_whole_lock(cache_dir, monkeypatch):
    fresh().load()
    (data,) = cache.directory().rglob("*.nbc")
    data.unlink()
    kinds = []
    lock = cache._lock
    monkeypatch.setattr(cache, "_lock", lambda *of: [kinds.append(of[1]), lock(*of)])

    check(fresh())

    assert kinds == [fcntl.LOCK_SH, fcntl.LOCK_EX]
    assert data.exists()


def test_four_threads_may_make_the_first_call_at_once(cache_dir):
    kernel, start = fresh(), threading.Barrier(4)

    def call(_: int) -> None:
        start.wait(30)
        check(kernel)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(call, range(4)))

    assert len(kernel.dispatcher.signatures) == 1


def test_every_kernel_belongs_to_a_role():
    for module in pkgutil.iter_modules(psrt.kernels.__path__):
        importlib.import_module(f"psrt.kernels.{module.name}")

    groups = {kernel.name: kernel.groups for kernel in jit.kernels()}

    assert len(groups) == len(jit.kernels()) > 30
    assert set().union(*groups.values()) == {
        "pserver",
        "trainer",
        "rule",
        "table",
        "op",
        "data",
        "convert",
        "half",
        "policy",
        "freeze",
    }


FILL = """
import sys
import numpy as np
from psrt.kernels import jit
from psrt.kernels.optimizers import elementwise, update_kernels
jit.set_cache_dir(sys.argv[1])
for kernel in (elementwise.add_, update_kernels.sgd.rows):
    kernel.load()
out = np.ones(5, np.float32)
elementwise.add_(out, out.copy())
print(elementwise.sum_squares(out))
"""


COMPILED = """
import sys
import psrt
from psrt.kernels import jit
from psrt.kernels.optimizers import elementwise, update_kernels
jit.set_cache_dir(sys.argv[1])
print(psrt.__path__[0])
jit.on_compile(print)
for kernel in (elementwise.add_, update_kernels.sgd.rows):
    kernel.load()
"""


def test_second_checkout_finds_the_code_of_the_first(tmp_path):
    printed = []
    for name in ("one", "two"):
        package = tmp_path / name / "psrt"
        shutil.copytree(
            Path(psrt.__path__[0]), package, ignore=shutil.ignore_patterns("__pycache__")
        )
        for source in package.rglob("*.py"):
            source.touch()
        command = [sys.executable, "-c", COMPILED, str(tmp_path / "cache")]
        child = subprocess.run(
            command, cwd=package.parent, capture_output=True, text=True, check=True, timeout=120
        )
        printed.append(child.stdout.split())

    kernels = ["elementwise.add_", "update_kernels.sgd_rows_"]
    assert printed == [[str(tmp_path / "one/psrt"), *kernels], [str(tmp_path / "two/psrt")]]


def test_three_processes_fill_one_cache_at_once(tmp_path):
    root = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", FILL, str(tmp_path)]
    children = [
        subprocess.Popen(
            command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(3)
    ]

    outputs = [child.communicate(timeout=120) for child in children]

    assert outputs == [("20.0\n", "")] * 3
