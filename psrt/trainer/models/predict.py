"""`psrt predict`: the lines of data files in, one line of predictions each out, in the same order.

Output to a file appears under its name only when it is complete. A malformed line ends the run with
an error that names file, line and slot; what stands on the standard output by then stays there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

import numpy as np
from threadpoolctl import threadpool_limits

from psrt.config.sections import PredictConfig
from psrt.core.counters import Counters
from psrt.core.errors import ConfigError, DataError, ErrorCode, PsrtError
from psrt.core.hints import did_you_mean
from psrt.core.types import Array
from psrt.data.formats import Format, options_of
from psrt.data.reading import QueueReader
from psrt.data.slots import Batch, Slot, batch_rows, shaped
from psrt.data.sources import STDIN, expand
from psrt.graph.ops import ROWS
from psrt.kernels import jit
from psrt.kernels.ops import nn
from psrt.trainer.models.file_layout import format_of_files, layout_of
from psrt.trainer.models.inference import Predictor, load_inference_model
from psrt.trainer.models.measured_predictions import MeasuredPredictions
from psrt.trainer.models.model_dir import MANIFEST, Prediction
from psrt.trainer.models.prediction_text import FORMATS, Fetched

_STDOUT = "the standard output"


def data_files(names: Sequence[str]) -> list[Path | str]:
    """The files that `names`, which may be globs or `-` for the standard input, stand for."""
    if "-" in names and sys.stdin is None:
        raise DataError(
            "the standard input is closed, and - names it.",
            code=ErrorCode.DATA_MISSING,
            hint="Name a file, or give one as the standard input: < FILE.",
        )
    files: list[Path | str] = []
    for name in names:
        files += [STDIN] if name == "-" else expand([name])
    return files


def predict(
    settings: PredictConfig,
    directory: str,
    files: Sequence[Path | str],
    advance: Callable[[int], None],
) -> tuple[int, str]:
    """Write the predictions for `files`; returns the number of examples, and their measures.

    `advance` is called with the bytes of text read since its last call.
    """
    check_target(settings.out, directory, [*files, settings.job])
    # No warm-up of kernels: of those a trainer has, a prediction takes a few.
    if settings.cache_dir:
        jit.set_cache_dir(settings.cache_dir)
    predictor = load_inference_model(directory, settings.fetch or None)
    check_fetches(predictor)
    layout = layout_of(settings, predictor.prediction)
    measured_by = (layout.label, *layout.measured_by) if settings.measure else ()
    slots = slots_of_files(predictor, settings.slots, layout, measured_by)
    names = {slot.name for slot in slots}
    measured = MeasuredPredictions(layout, names, predictor.fetches) if settings.measure else None
    format = format_of_files(settings, layout, slots)
    limits = threadpool_limits(settings.cpu_threads, user_api="blas")
    with limits, output(settings.out) as file, naming_slots(slots, predictor.feeds):
        batches = _read(settings, format, files, advance)
        examples = _write(settings, predictor, batches, file, measured)
    return examples, "" if measured is None else measured.text()


def slots_of_files(
    predictor: Predictor, names: Sequence[str], layout: Prediction, more: Sequence[str] = ()
) -> tuple[Slot, ...]:
    """The fields of a line: those named, or else those of the training files.

    Of files with named columns only those that the model is fed, and `more`, are read, so labels
    may be absent.
    """
    known = {slot.name: slot for slot in predictor.slots}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"--slots names {name}, which is no slot of the model.",
                hint=did_you_mean(name, known, f"It has {', '.join(known)}."),
            )
    missing = [name for name in predictor.feeds if name not in (names or known)]
    if missing:
        raise ConfigError(
            f"--slots leaves out {', '.join(missing)}, which the model needs.",
            hint=f"It is fed {', '.join(predictor.feeds)}; the order is that of the files.",
        )
    if not names and "columns" in options_of(layout.format):
        read = {*predictor.feeds, *more}
        return tuple(slot for slot in predictor.slots if slot.name in read)
    return tuple(known[name] for name in names) or predictor.slots


@contextmanager
def naming_slots(slots: Sequence[Slot], fed: Sequence[str]) -> Iterator[None]:
    """Explain a malformed line by the slots that files without labels do not have."""
    unfed = [slot.name for slot in slots if slot.name not in fed]
    try:
        yield
    except DataError as error:
        if error.code is not ErrorCode.DATA_MALFORMED or not unfed:
            raise
        hint = f"If the lines have no {', '.join(unfed)}, add --slots {','.join(fed)}."
        raise DataError(error.message, hint=f"{error.hint} {hint}".strip()) from error


def check_fetches(predictor: Predictor) -> None:
    """Refuse what has no value by example, such as a mean loss."""
    for name in predictor.fetches:
        var = predictor.program.vars[name]
        if var.shape[:1] != (ROWS,):
            raise ConfigError(
                f"{name} has shape {var.shape}: one value for a whole batch, none by example.",
                hint="Fetch a var whose first dimension is the batch (-1).",
            )


def check_target(out: str, model: str, inputs: Iterable[Path | str] = ()) -> None:
    """Refuse, before any work, a file that could not be put in place in the end.

    A file that is read is refused as well: one of the directory `model`, or of `inputs`.
    """
    path = Path(out)
    with writing(out):
        if out and path.exists() and not path.is_file():
            raise ConfigError(f"{out} exists and is not a file; psrt will not replace it.")
        if out and not path.parent.is_dir():
            raise ConfigError(
                f"{out} cannot be written: {path.parent} is not a directory.",
                hint=f"Make it first: mkdir -p {path.parent}",
            )
        for written in (path, unfinished(out)) if out else ():
            if written.exists():
                _check_not_read(written, [*inputs, *_files_of(Path(model))])


def _files_of(model: Path) -> list[Path]:
    return [model / MANIFEST, *model.glob("*/*.npy")]


def _check_not_read(written: Path, inputs: Iterable[Path | str]) -> None:
    for name in inputs:
        if _is_same(written, "/dev/stdin" if name == STDIN else name):
            raise ConfigError(
                f"{written} would be overwritten, but is read: it is the same file as {name}.",
                hint="Write to a file of another name.",
            )


def _is_same(written: Path, name: Path | str) -> bool:
    try:
        return written.samefile(name)
    except OSError:  # a URL, or what its reader will complain of
        return False


def unfinished(out: str) -> Path:
    """Return the temporary path of a file that is being written."""
    return Path(f"{out}.tmp")


@contextmanager
def writing(out: str) -> Iterator[None]:
    """Tell what the system refuses in this block as an error of writing `out`."""
    try:
        yield
    except BrokenPipeError:  # a reader that left is no error: the command ends quietly
        raise
    except OSError as error:
        raise ConfigError(
            f"{error.filename or out} cannot be written ({error.strerror}).",
            hint="Name a file in a directory that exists, may be written and has room.",
        ) from error


@contextmanager
def output(out: str) -> Iterator[TextIO]:
    """The standard output, or a file that gets its name when the block ends without an error."""
    if not out:
        yield from _standard_output()
        return
    written = unfinished(out)
    with writing(out):
        file = written.open("w", encoding="utf-8")
    try:
        yield file
        with writing(out):
            file.flush()
            os.fsync(file.fileno())
            file.close()
            written.replace(out)
    finally:
        with suppress(OSError):  # an error that was raised before is raised again
            file.close()
        with suppress(OSError):
            written.unlink(missing_ok=True)


def _standard_output() -> Iterator[TextIO]:
    if sys.stdout is None:
        raise ConfigError(
            f"{_STDOUT} is closed, and the predictions would go there.",
            hint="Name a file with --out.",
        )
    try:
        yield sys.stdout
        with writing(_STDOUT):
            sys.stdout.flush()
    except PsrtError:
        _drop_unwritten()
        raise


def _drop_unwritten() -> None:
    """Drop text that cannot be written: Python would try to write it again at its exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _read(
    settings: PredictConfig,
    format: Format,
    files: Sequence[Path | str],
    advance: Callable[[int], None],
) -> Iterator[Batch]:
    """Batches in the order of files and lines, which one reader thread keeps."""
    counters, reported = Counters(), 0
    with QueueReader(
        files, format.slots, settings.batch_size, format=format, counters=counters
    ) as batches:
        for batch in batches:
            yield batch
            read = int(counters.snapshot()["data_bytes"])
            advance(read - reported)
            reported = read


def _write(
    settings: PredictConfig,
    predictor: Predictor,
    batches: Iterator[Batch],
    file: TextIO,
    measured: MeasuredPredictions | None = None,
) -> int:
    vars = [predictor.program.vars[name] for name in predictor.feeds]
    as_probabilities = predictor.prediction.kind == "logit" and not settings.logits
    lines_of = FORMATS[settings.format]
    examples = 0
    for batch in batches:
        rows = batch_rows(batch)
        fetched = predictor.run(shaped(vars, batch))
        _check_rows(predictor.fetches, fetched, rows)
        values = [probabilities(v) for v in fetched] if as_probabilities else fetched
        with writing(settings.out or _STDOUT):
            file.writelines(lines_of(predictor.fetches, values))
        if measured is not None:
            is_logit = predictor.prediction.kind == "logit"
            measured.add(probabilities(fetched[0]) if is_logit else fetched[0], batch)
        examples += rows
    return examples


def probabilities(logits: Fetched) -> Fetched:
    """σ of every value."""
    if not isinstance(logits, np.ndarray):
        return logits
    out: Array = np.empty_like(logits)
    nn.sigmoid(logits.reshape(-1), out.reshape(-1))
    return out


def _check_rows(names: Sequence[str], fetched: Sequence[Fetched], rows: int) -> None:
    """A reshape may have merged or split the batch dimension."""
    for name, value in zip(names, fetched, strict=True):
        found = len(value) if isinstance(value, np.ndarray) else value.batch_size
        if found != rows:
            raise DataError(
                f"{name} has {found} rows for {rows} examples; they cannot be matched to lines.",
                code=ErrorCode.SHAPE_MISMATCH,
                hint="Fetch a var with one row an example.",
            )
