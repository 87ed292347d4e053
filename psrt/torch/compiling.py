"""The border of `torch.compile`: what it calls and does not trace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import torch

Function = TypeVar("Function", bound=Callable[..., Any])


def untraced(function: Function) -> Function:
    """`function`, which compiled code calls as it is: a graph ends there, and the next begins."""
    return cast("Function", torch.compiler.disable(function))
