"""The layout of a saved model directory: names, manifest, checksums. No arrays are touched here.

    DIR/manifest.json                 format, version, program text, table specs, files, row counts,
                                      and what prediction feeds and fetches
    DIR/dense/<parameter>.npy         the whole parameter, float32
    DIR/sparse/<table>-00000.ids.npy  ids (n,) int64 of one page of rows, no id twice in a table
    DIR/sparse/<table>-00000.rows.npy their weights (n, width) float32

Arrays only, never pickle. The manifest is written last, into a temporary directory which is then
renamed, so a directory with its final name is complete. Every problem found while reading is a
`DataError` MODEL_UNREADABLE that names the file. Reference: docs/reference/model-format.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from psrt.config.sections import DATA_FORMATS
from psrt.core import specs
from psrt.core.errors import DataError, ErrorCode
from psrt.data.slots import Slot

FORMAT = "psrt-model"
VERSION = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Page:
    """Two files of one table: `count` ids and as many rows."""

    ids: str
    rows: str
    count: int


@dataclass(frozen=True)
class Prediction:
    """Prediction of a model: the data vars to feed and the vars to fetch.

    `kind` names the fetched values: "probability", "logit", or "" where it is unknown.
    `label` is the data var with the true answers, "" for none, `group` and `weight` those of the
    model's Model; `slots` are the fields of a line of
    the training files, labels included, `format` is that of these files, with its `options`.
    """

    feeds: tuple[str, ...] = ()
    fetches: tuple[str, ...] = ()
    kind: str = ""
    label: str = ""
    slots: tuple[Slot, ...] = ()
    format: str = "multislot"
    options: Mapping[str, Any] = field(default_factory=dict)
    group: str = ""
    weight: str = ""

    @property
    def measured_by(self) -> tuple[str, str]:
        """Names of the data vars with groups and weights, "" for none."""
        return self.group, self.weight


@dataclass
class Manifest:
    """Contents of `manifest.json`. `tables` are whole: unsliced parameters, all virtual shards.

    An older manifest has no `prediction` and is read as one that fetches nothing.
    """

    job: str
    software: str
    program: str
    tables: list[specs.TableSpec]
    prediction: Prediction = Prediction()
    dense: dict[str, str] = field(default_factory=dict)
    sparse: dict[str, list[Page]] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)

    def rows(self, table: str) -> int:
        return sum(page.count for page in self.sparse.get(table, []))

    def to_json(self) -> str:
        plain = {
            "format": FORMAT,
            "version": VERSION,
            "job": self.job,
            "software": self.software,
            "rows": {table: self.rows(table) for table in self.sparse},
            "prediction": asdict(self.prediction),
            "tables": [specs.to_plain(spec) for spec in self.tables],
            "dense": self.dense,
            "sparse": {
                table: [asdict(page) for page in pages] for table, pages in self.sparse.items()
            },
            "sha256": self.sha256,
            "program": self.program,
        }
        return json.dumps(plain, indent=1)


def dense_file(parameter: str) -> str:
    return f"dense/{quote(parameter, safe='')}.npy"


def page_files(table: str, number: int) -> tuple[str, str]:
    """Names of the ids and the rows of a page."""
    stem = f"sparse/{quote(table, safe='')}-{number:05d}"
    return f"{stem}.ids.npy", f"{stem}.rows.npy"


def digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_DAMAGED = "Copy the directory again from where it was saved, or train and save the model again."
_ABSENT = "Check the path: --save DIR of psrt trainer and psrt launch writes such a directory."


def unreadable(path: Path, why: str, hint: str = _DAMAGED) -> DataError:
    """The error every reader of a model directory raises."""
    return DataError(
        f"the saved model cannot be read: {path} {why}.", code=ErrorCode.MODEL_UNREADABLE, hint=hint
    )


def read_manifest(directory: Path) -> Manifest:
    """Parse and check `manifest.json`; the files it names are not opened."""
    path = directory / MANIFEST
    if not directory.is_dir():
        raise unreadable(directory, "is not a directory", _ABSENT)
    try:
        plain = json.loads(path.read_text())
    except OSError as error:
        raise unreadable(path, f"cannot be opened ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise unreadable(path, f"is not JSON ({error})") from error
    _check_version(plain, path)
    try:
        return _parse(plain)
    except Exception as error:  # any shape of JSON may stand here
        raise unreadable(path, f"is not a manifest ({type(error).__name__}: {error})") from error


def _check_version(plain: Any, path: Path) -> None:
    if not isinstance(plain, dict) or plain.get("format") != FORMAT:
        raise unreadable(path, f"does not say format {FORMAT!r}")
    if plain.get("version") != VERSION:
        raise unreadable(
            path, f"is version {plain.get('version')}; this psrt reads version {VERSION}"
        )


def _parse(plain: dict[str, Any]) -> Manifest:
    files = {str(name): str(value) for name, value in plain["sha256"].items()}
    for name in files:
        if ".." in Path(name).parts or Path(name).is_absolute():
            raise ValueError(f"file {name!r} is outside of the directory")
    dense = {str(name): str(file) for name, file in plain["dense"].items()}
    sparse = {name: [Page(**page) for page in pages] for name, pages in plain["sparse"].items()}
    _check_files(files, dense, sparse)
    return Manifest(
        job=str(plain["job"]),
        software=str(plain["software"]),
        program=str(plain["program"]),
        tables=[specs.from_plain(table) for table in plain["tables"]],
        prediction=_parse_prediction(plain.get("prediction", {})),
        dense=dense,
        sparse=sparse,
        sha256=files,
    )


def _check_files(
    files: Mapping[str, str], dense: Mapping[str, str], sparse: Mapping[str, list[Page]]
) -> None:
    """Raise `ValueError` unless every array has a checksum, and every page a count."""
    pages = [page for pages in sparse.values() for page in pages]
    for name in [*dense.values(), *(name for page in pages for name in (page.ids, page.rows))]:
        if not isinstance(name, str) or name not in files:
            raise ValueError(f"file {name!r} has no checksum")
    for name in files:
        if "\0" in name or name != name.encode(errors="replace").decode():
            raise ValueError(f"{name!r} is not the name of a file")
    for page in pages:
        if type(page.count) is not int:
            raise ValueError(f"page {page.ids} has {page.count!r} rows")


def _parse_prediction(plain: dict[str, Any]) -> Prediction:
    return Prediction(
        feeds=tuple(str(name) for name in plain.get("feeds", ())),
        fetches=tuple(str(name) for name in plain.get("fetches", ())),
        kind=str(plain.get("kind", "")),
        label=str(plain.get("label", "")),
        slots=tuple(Slot(**slot) for slot in plain.get("slots", ())),
        format=_known_format(plain.get("format", "multislot")),
        options=_legal_options(plain.get("options", {})),
        group=str(plain.get("group", "")),
        weight=str(plain.get("weight", "")),
    )


def _known_format(name: Any) -> str:
    if name not in DATA_FORMATS:
        raise ValueError(f"format {name!r} is unknown")
    return str(name)


def _legal_options(options: Any) -> dict[str, Any]:
    if not isinstance(options.get("columns", {}), dict):
        raise ValueError("columns is no object")
    return dict(options)
