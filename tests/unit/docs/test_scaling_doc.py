"""docs/how-to/size-a-cluster.md shows what the model computes, and names what there is."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks import scaling_table
from psrt.core.specs import VIRTUAL_SHARDS
from psrt.kernels.tables.leaves import SLOTS
from psrt.pserver.serving.id_list_cache import LIMIT_BYTES
from psrt.sizing.loads import CONNECTION_BYTES, MAX_MESSAGE_BYTES

ROOT = Path(__file__).parents[3]
TEXT = scaling_table.DOC.read_text(encoding="utf-8")


def test_the_tables_are_those_of_the_model() -> None:
    assert scaling_table.written(TEXT) == TEXT, "run: python -m benchmarks.scaling_table --write"


def test_the_limits_in_the_text_are_those_of_the_code() -> None:
    text = " ".join(TEXT.split())
    distinct, growth = scaling_table.distinct_ids()

    assert f"512 examples of W1's ids have {distinct:,.0f} distinct ones, β = {growth:.2f}." in text
    assert f"A table has {VIRTUAL_SHARDS:,} virtual shards" in text
    assert f"at most {SLOTS / 1e6:.0f} million rows" in text
    assert f"at most {MAX_MESSAGE_BYTES >> 30} GiB" in text
    assert f"{CONNECTION_BYTES >> 10} KiB each" in text
    assert f"take {LIMIT_BYTES >> 20} MiB at most" in text


def test_the_files_it_names_exist() -> None:
    named = set(re.findall(r"`((?:benchmarks|tests|kernels|partition)/[\w/.]+)`", TEXT))

    assert named
    for name in named:
        found = ROOT / name if name.startswith(("benchmarks", "tests")) else ROOT / "psrt" / name
        assert found.exists() or found.with_suffix(".py").exists(), name
