"""Writes MultiSlot files of the UCI Adult table: does a person earn more than 50,000 a year?

    python make_data.py data                             2,000 + 500 invented rows
    python make_data.py data adult.data.gz adult.test.gz the table itself, plain or gzip

Slots: `income` (1 float), `numbers` (5 floats: age, years of education, the logarithms of capital
gain and loss, hours a week, all shifted and scaled), `deep` (9 ids: the eight categories and the
bucket of the age), `wide` (12 ids: the same nine and three crosses of them). Ids are
positions in a vocabulary of the training rows; 0 is for what is not in it.
"""

from __future__ import annotations

import gzip
import math
import random
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

NUMBERS = ("age", "education-num", "capital-gain", "capital-loss", "hours-per-week")
CATEGORIES = (
    *("workclass", "education", "marital-status", "occupation", "relationship", "race", "sex"),
    "native-country",
)
COLUMNS = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status"),
    *("occupation", "relationship", "race", "sex", "capital-gain", "capital-loss"),
    *("hours-per-week", "native-country", "income"),
)
CROSSES = (
    ("education", "occupation"),
    ("native-country", "occupation"),
    ("age-bucket", "education", "occupation"),
)
AGES = (18, 25, 30, 35, 40, 45, 50, 55, 60, 65)
FILES = 4
UNKNOWN = 0

Row = dict[str, str]


def read_table(path: Path) -> list[Row]:
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    rows = []
    for number, line in enumerate(text.decode().splitlines(), 1):
        if not line.strip() or line.startswith("|"):  # the test file may begin with a remark
            continue
        fields = [field.strip() for field in line.split(",")]
        if len(fields) != len(COLUMNS):
            sys.exit(f"{path}, line {number}: {len(fields)} fields, expected {len(COLUMNS)}")
        rows.append(dict(zip(COLUMNS, fields, strict=True)))
    return rows


def invent(count: int, draw: random.Random) -> list[Row]:
    """Rows in which schooling, age and occupation decide, and some luck."""
    rows = []
    for _ in range(count):
        row = {name: f"{name}-{draw.randrange(6)}" for name in CATEGORIES}
        age, years = draw.randrange(17, 80), draw.randrange(5, 17)
        luck = draw.gauss(0, 1) + (row["occupation"] in ("occupation-1", "occupation-4"))
        rich = (years - 11) * 0.5 - ((age - 48) / 16) ** 2 + luck > 0.5
        row |= {"age": str(age), "education-num": str(years), "fnlwgt": "1"}
        row |= {"capital-gain": "0", "capital-loss": "0"}
        row |= {
            "hours-per-week": str(draw.randrange(10, 60)),
            "income": ">50K" if rich else "<=50K",
        }
        rows.append(row)
    return rows


def words(row: Row) -> list[str]:
    """The nine words of `deep`."""
    bucket = sum(int(row["age"]) >= age for age in AGES)
    return [f"{name}={row[name]}" for name in CATEGORIES] + [f"age-bucket={bucket}"]


def crosses(row: Row) -> list[str]:
    by_name = dict(zip((*CATEGORIES, "age-bucket"), words(row), strict=True))
    return ["&".join(by_name[name] for name in names) for names in CROSSES]


def numbers(row: Row) -> list[float]:
    """Gains and losses are 0 for most and go to 99,999, hence their logarithms."""
    values = {name: float(row[name]) for name in NUMBERS}
    return [math.log1p(v) if name.startswith("capital") else v for name, v in values.items()]


class Writer:
    """Writes rows as text, with the vocabulary and the scales of the training rows."""

    def __init__(self, rows: Sequence[Row]) -> None:
        known = dict.fromkeys(word for row in rows for word in words(row) + crosses(row))
        self.ids = {word: number for number, word in enumerate(known, UNKNOWN + 1)}
        columns = list(zip(*(numbers(row) for row in rows), strict=True))
        self.means = [statistics.fmean(column) for column in columns]
        self.deviations = [statistics.pstdev(column) or 1.0 for column in columns]

    def line(self, row: Row) -> str:
        income = 1 if row["income"].startswith(">50K") else 0
        scaled = [
            (value - mean) / deviation
            for value, mean, deviation in zip(
                numbers(row), self.means, self.deviations, strict=True
            )
        ]
        deep = self._ids(words(row))
        wide = deep + self._ids(crosses(row))
        parts = ([income], [f"{value:.5f}" for value in scaled], deep, wide)
        return " ".join(f"{len(part)} {' '.join(map(str, part))}" for part in parts) + "\n"

    def _ids(self, texts: Iterable[str]) -> list[int]:
        return [self.ids.get(text, UNKNOWN) for text in texts]


def main(directory: Path, *tables: Path) -> None:
    draw = random.Random(1)
    train, tests = [read_table(t) for t in tables] or [invent(2000, draw), invent(500, draw)]
    writer = Writer(train)
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        text = "".join(map(writer.line, train[number::FILES]))
        (directory / f"train-{number}.txt").write_text(text)
    (directory / "test-0.txt").write_text("".join(map(writer.line, tests)))
    print(f"{len(train):,} training and {len(tests):,} test rows, {len(writer.ids):,} ids")


if __name__ == "__main__":
    main(*(Path(argument) for argument in sys.argv[1:]))
