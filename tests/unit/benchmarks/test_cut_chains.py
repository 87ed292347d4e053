"""The benchmark of chains of cuts writes, restores and merges them."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.cut_chains import __main__ as cut_chains


def test_an_incremental_cut_is_smaller_and_the_chain_restores_every_row(tmp_path: Path) -> None:
    args = argparse.Namespace(
        rows=5_000,
        width=4,
        changed=0.1,
        cuts=2,
        stripes=2,
        threads=2,
        rounds=1,
        directory=str(tmp_path),
    )

    figures = cut_chains.run(args)

    assert 0 < figures["size_ratio"] < 0.5
    assert min(figures["restore_chain"], figures["load_chain"], figures["load"]) > 0
    assert min(*figures["write_shares"], *figures["load_shares"], figures["new_share"]) > 0
    assert figures["compact"]["mb"] > figures["delta"]["mb"]
    assert list(tmp_path.iterdir()) == []
