"""A trainer that asks for a shrink names tables one by one."""

from __future__ import annotations

from typing import Any

import pytest

from psrt.core.errors import ConfigError
from psrt.trainer.training.shrinking import shrink


@pytest.mark.parametrize("tables", [(["rows"],), ("rows", 7), (None,)])
def test_what_is_no_name_of_a_table_is_refused_before_a_pserver_is_asked(tables: Any) -> None:
    with pytest.raises(ConfigError, match="which is no name of a table") as raised:
        shrink([], tables, dry_run=False, timeout_s=1.0)

    assert 'shrink("a", "b")' in raised.value.hint
