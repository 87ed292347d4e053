"""The benchmark of array files measures both kinds of file, written and read."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import cut_files


def test_every_figure_has_a_plain_one_and_a_share(tmp_path: Path) -> None:
    args = argparse.Namespace(mib=1, page_kib=256, rounds=2, directory=str(tmp_path))

    figures = cut_files.run(args)

    for kind in ("write", "read", "read_cached"):
        assert figures[f"{kind}_mb_per_s"] > 0
        assert figures[f"{kind}_plain_mb_per_s"] > 0
        assert figures[f"{kind}_share"] > 0
    assert list(tmp_path.iterdir()) == []
