"""A saved model that was edited is an error of the catalogue that names a file, never a traceback.

Checksums fit here: a person may change a file and its checksum, as a script that converts models
does.
"""

from __future__ import annotations

import copy
import io
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import psrt
from psrt.core.errors import PsrtError
from psrt.pserver.saved import open_state
from psrt.trainer.models.model_dir import digest
from tests.support.click_model import batch, train

ODD = (None, -1, 1.5, 1e308, "", "x", "../x", "a\0b", "\ud800", [], {}, [[]], True, 10**30)
FEED = batch(5, seed=9)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    trained = train(True, None)
    directory = tmp_path / "model"
    prediction = [trained.model.prediction]
    psrt.save_inference_model(directory, ["x", "ids"], prediction, trained.program, trained.scope)
    return directory


def failure(directory: Path) -> str:
    """Load, predict, read everything; returns the error that is none of the catalogue."""
    try:
        predictor = psrt.load_inference_model(directory)
        predictor.run(FEED)
        for name in predictor.program.parameters:
            predictor.parameter(name)
    except PsrtError as error:
        return "" if error.hint or error.message else "an error without words"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return ""


def paths(plain: Any, path: tuple = ()) -> Iterator[tuple]:
    """The path of every value in a JSON document."""
    yield path
    if isinstance(plain, dict | list):
        for key, value in plain.items() if isinstance(plain, dict) else enumerate(plain):
            yield from paths(value, (*path, key))


def changed(plain: Any, path: tuple, value: Any) -> Any:
    if not path:
        return value
    plain = copy.deepcopy(plain)
    holder = plain
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return plain


def without(plain: Any, path: tuple) -> Any:
    plain = copy.deepcopy(plain)
    holder = plain
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    return plain


def test_any_edit_of_the_manifest_is_an_error_of_the_catalogue(model: Path) -> None:
    manifest = model / "manifest.json"
    plain = json.loads(manifest.read_text())
    failures = []
    for path in paths(plain):
        edited = [changed(plain, path, value) for value in ODD]
        for each in [*edited, without(plain, path)] if path else edited:
            manifest.write_text(json.dumps(each))
            if found := failure(model):
                failures.append((path, found))

    assert failures == []


def npy(values: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, values, allow_pickle=True)
    return out.getvalue()


def with_shape(old: bytes, shape: str) -> bytes:
    descr = np.load(io.BytesIO(old)).dtype.str
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    return old[:10] + (header.ljust(117) + "\n").encode() + old[128:]


def edits(old: bytes) -> Iterator[bytes]:
    values, rng = np.load(io.BytesIO(old)), random.Random(1)
    yield from (b"", b"x" * 50, old[:-1], old[:20], old + b"1")
    yield from map(npy, (values.reshape(-1), values[None], values[:0], values[:-1], values[0]))
    yield from map(npy, (np.float32(1), np.zeros(3, [("a", "f4")]), np.concatenate([values] * 2)))
    for dtype in (values.dtype.newbyteorder(">"), np.float64, np.int8, object, str):
        yield npy(values.astype(dtype))
    for shape in (
        "(10**15,)",
        "(1000000000000,)",
        "(-1,)",
        f"({10**30},)",
        "'a'",
        "(1.5,)",
        "None",
    ):
        yield with_shape(old, shape)
    for at in range(128):
        yield old[:at] + bytes([old[at] ^ rng.randrange(1, 256)]) + old[at + 1 :]


def test_any_edit_of_an_array_is_an_error_of_the_catalogue(model: Path) -> None:
    manifest = model / "manifest.json"
    plain = json.loads(manifest.read_text())
    failures = []
    for name in plain["sha256"]:
        old = (model / name).read_bytes()
        for data in edits(old):
            (model / name).write_bytes(data)
            manifest.write_text(json.dumps(changed(plain, ("sha256", name), digest(model / name))))
            if found := failure(model):
                failures.append((name, found))
        (model / name).write_bytes(old)

    assert failures == []


def test_a_second_row_of_an_id_is_an_error_that_names_both(model: Path) -> None:
    manifest = model / "manifest.json"
    plain = json.loads(manifest.read_text())
    ((table, pages),) = plain["sparse"].items()
    ids = np.load(model / pages[0]["ids"])
    manifest.write_text(json.dumps(changed(plain, ("sparse", table), [pages[0], pages[0]])))

    with pytest.raises(PsrtError, match=rf"ids\.npy has id {ids.min()} a second time"):
        psrt.load_inference_model(model)
    saved = open_state(str(model)).sparse[table]
    with pytest.raises(PsrtError, match=rf"ids\.npy has id {ids.min()} a second time"):
        list(saved.groups(0, saved.spec.virtual_shards))


def test_an_unedited_model_predicts(model: Path) -> None:
    assert psrt.load_inference_model(model).run(FEED)[0].shape == (5, 1)
