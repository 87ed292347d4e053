"""Hints for errors that Python raises in a job's own code."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from psrt.core.hints import did_you_mean
from psrt.graph import clip, initializer, layers, optimizer, regularizer, tables
from psrt.graph.model import Model
from psrt.graph.param import Param

_KEYWORD = re.compile(r"(\w+)(?:\.__init__)?\(\) got an unexpected keyword argument '(\w+)'")
_MODULES = (clip, initializer, layers, optimizer, regularizer, tables)
_PUBLIC: dict[str, tuple[str, Callable[..., Any]]] = {
    name: (f"psrt.{module.__name__.rpartition('.')[2]}.{name}", getattr(module, name))
    for module in _MODULES
    for name in module.__all__
}
_PUBLIC |= {"Model": ("psrt.Model", Model), "Param": ("psrt.Param", Param)}


def hint_for(error: BaseException) -> str:
    """Return what the reader can do about an error, "" if only its own text helps."""
    if isinstance(error, ModuleNotFoundError):
        return (
            f"Install {error.name} for the Python that runs psrt, or put {error.name}.py into the "
            "folder of the job's program."
        )
    named = _KEYWORD.search(str(error)) if isinstance(error, TypeError) else None
    return _of_keyword(*named.groups()) if named else ""


def _of_keyword(function: str, keyword: str) -> str:
    """Return the nearest argument of a public function of psrt, or all of them."""
    if function not in _PUBLIC:
        return ""
    name, called = _PUBLIC[function]
    known = list(inspect.signature(called).parameters)
    return did_you_mean(keyword, known, f"{name} takes {', '.join(known)}.")
