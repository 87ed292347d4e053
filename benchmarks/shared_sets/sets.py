"""The files of each public sample data set, and the number of rows that a reader finds."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from psrt.data.convert import idx, imikolov
from psrt.data.convert.sharded import Destination, Split
from psrt.data.formats.formats import format_named
from psrt.data.reading.queue import QueueReader
from psrt.data.slots import Slot, batch_rows

Count: TypeAlias = Callable[[Path], int]

_BATCH = 1024
_HEADLESS = {"header": False, "quote": ""}


def ids(*names: str, size: int | None = 1) -> tuple[Slot, ...]:
    return tuple(Slot(name, "uint64", size) for name in names)


def floats(name: str, size: int | None = 1) -> Slot:
    return Slot(name, "float", size)


def rows(path: Path, named: str, *slots: Slot, **options: Any) -> int:
    """The number of examples in a file, read by the format `named`."""
    with QueueReader([path], slots, _BATCH, format=format_named(named, slots, options)) as batches:
        return sum(map(batch_rows, batches))


def reader(named: str, *slots: Slot, **options: Any) -> Count:
    return lambda path: rows(path, named, *slots, **options)


def cells(*slots: Slot, columns: dict[str, Any], **options: Any) -> Count:
    return reader("csv", *slots, columns=columns, **{**_HEADLESS, **options})


def sentences(window: int) -> Count:
    """A counter of the n-grams of a text, or of its skip-gram pairs if `window` is above 0."""

    def count(path: Path) -> int:
        with tempfile.TemporaryDirectory() as directory:
            windows = imikolov.Windows(5, window)
            out = Destination(Path(directory) / "out", 1)
            writer, _ = imikolov.convert([path], out, windows, Split(0, 0), [], 1)
            return sum(writer.rows.values())

    return count


def images(path: Path) -> int:
    return len(idx.read_images(path, path.with_name("t10k-labels-idx1-ubyte.gz")).labels)


# --- adult, uci_housing ---

_INCOME = {"<=50K": 0, ">50K": 1, "<=50K.": 0, ">50K.": 1}
_ADULT_NUMBERS = [0, 2, 4, 10, 11, 12]
_ADULT_TEXTS = {"workclass": 1, "education": 3, "occupation": 6, "sex": 9, "country": 13}
ADULT = cells(
    floats("rich"),
    floats("numbers", 6),
    *ids(*_ADULT_TEXTS),
    columns={
        "rich": {"column": 14, "values": _INCOME},
        "numbers": {"columns": _ADULT_NUMBERS, "scale": "log"},
        **{name: {"column": at, "kind": "text"} for name, at in _ADULT_TEXTS.items()},
    },
)
HOUSING = cells(
    floats("price"),
    floats("x", 13),
    columns={"price": 13, "x": list(range(13))},
    delimiter="blanks",
)

# --- criteo, libsvm ---

_CRITEO = (floats("dense_input", 13), *ids(*(f"C{i}" for i in range(1, 27))))
_LIBSVM = (floats("label"), *ids("ids", size=None), floats("values", None))

# --- the samples of PaddleRec's models ---

_SLOTS = ids(*(f"C{i}" for i in range(1, 27)))
CRITEO_SLOTS = reader(
    "pairs",
    *(floats("click"), floats("dense", 13), *_SLOTS),
    columns={"dense": "dense_feature", **{f"C{i}": str(i) for i in range(1, 27)}},
)
FFM = reader("pairs", *(floats("label"), *ids("feat_idx", size=39), floats("feat_value", 39)))
BST = reader(
    "pairs",
    *ids("userid", "target", "target_cate", "target_position"),
    *(*ids("history", "cate", "position", size=None), floats("label")),
)
SLOT_DNN = reader(
    "pairs",
    *ids("click"),
    *ids(*(f"s{i}" for i in range(2, 301)), size=None),
    columns={"click": "1", **{f"s{i}": str(i) for i in range(2, 301)}},
    order="value:name",
)
_ESMM = ("210", "216", "301", "205", "206", "207", "508", "121", "150_14")
ESMM = reader(
    "pairs",
    *(floats("click"), floats("buy"), *ids(*(f"s{name}" for name in _ESMM), size=None)),
    columns={"click": 1, "buy": 2, **{f"s{name}": name for name in _ESMM}},
    delimiter=",",
)
AUTOINT = cells(
    *(floats("label"), *ids("ids", size=39), floats("values", 39)),
    columns={"label": 0, "ids": list(range(1, 40)), "values": list(range(40, 79))},
    delimiter="blanks",
)
DIN = cells(
    *(floats("label"), *ids("items", "categories", size=None), *ids("item", "category")),
    columns={
        "label": 4,
        "items": {"column": 0, "separator": " "},
        "categories": {"column": 1, "separator": " "},
        "item": 2,
        "category": 3,
    },
    delimiter=";",
)
_AITM_NAMES = (
    *("101", "121", "122", "124", "125", "126", "127", "128", "129"),
    *("205", "206", "207", "216", "508", "509", "702", "853", "301"),
)
_AITM = (floats("click"), floats("purchase"), *ids(*_AITM_NAMES))
AITM_COLUMNS = {name: at for at, name in enumerate(["click", "purchase", *_AITM_NAMES])}
MMOE = cells(
    *(floats("label", 2), floats("x", 499)),
    columns={"label": [0, 1], "x": list(range(2, 501))},
    delimiter=",",
)
DMR = cells(
    *(floats("label"), *ids("history", size=50), *ids("user", "item"), floats("price")),
    columns={"label": 266, "history": list(range(50)), "user": 250, "item": 259, "price": 264},
    delimiter=",",
)
NCF = cells(
    *ids("user", "item"), floats("label"), columns={"user": 0, "item": 1, "label": 2}, delimiter=","
)
_QUESTION = ("a", "b", "c", "d")
QUESTIONS = cells(
    *ids(*_QUESTION),
    columns={name: {"column": at, "kind": "text"} for at, name in enumerate(_QUESTION)},
    delimiter="blanks",
)
_DICTIONARY = cells(
    *ids("word", "number"),
    columns={"word": {"column": 0, "kind": "text"}, "number": 1},
    delimiter="blanks",
)

SETS: dict[str, Count] = {
    "adult/*.gz": ADULT,
    "criteo/train.tsv.gz": reader("criteo", floats("click"), *_CRITEO),
    "criteo/head10k.tsv.gz": reader("criteo", floats("click"), *_CRITEO),
    "criteo/unlabelled.tsv.gz": reader("criteo", *_CRITEO, label=False),
    "libsvm/*.gz": reader("libsvm", *_LIBSVM),
    "mnist_t10k/*images*": images,
    "ptb/*.gz": sentences(0),
    "text8_head/*.gz": sentences(2),
    "uci_housing/*.gz": HOUSING,
    "paddlerec_samples/criteo_slot_train.txt": CRITEO_SLOTS,
    "paddlerec_samples/criteo_lr_ffm_train.txt": FFM,
    "paddlerec_samples/criteo_autoint_train.txt": AUTOINT,
    "paddlerec_samples/slot_dnn_demo_10.txt": SLOT_DNN,
    "paddlerec_samples/amazon_electronics_din.txt": DIN,
    "paddlerec_samples/bst_train.txt": BST,
    "paddlerec_samples/aliccp_esmm_*.txt": ESMM,
    "paddlerec_samples/aliccp_aitm_train.csv": reader("csv", *_AITM),
    "paddlerec_samples/aliccp_aitm_test.csv": cells(*_AITM, columns=AITM_COLUMNS, delimiter=","),
    "paddlerec_samples/census_mmoe_train.txt": MMOE,
    "paddlerec_samples/alimama_dmr_train.txt": DMR,
    "paddlerec_samples/ncf_train.txt": NCF,
    "paddlerec_samples/word2vec_train.txt": sentences(2),
    "paddlerec_samples/word2vec_test.txt": QUESTIONS,
    "paddlerec_samples/word2vec_word_*_dict.txt": _DICTIONARY,
}
