"""A warm start: the source of the first values of a job's parameters, and rules that map names."""

from __future__ import annotations

from dataclasses import dataclass

STATES = ("", "kept", "new")


@dataclass(frozen=True)
class WarmRule:
    """A rule for parameters that do not begin with the values saved under their own name.

    `parameter` is a name or, if `is_pattern`, a regular expression that matches a whole name.
    `source` is the name in the source, in which `\\1` stands for the first group of a pattern; "" =
    the same name. With `skip` a parameter begins with its initial values. `state` says what happens
    to the optimizer's state: "kept", "new", or "" = kept if optimizer and shape are equal. With
    `resize` a parameter may have another shape than in the source, and takes what both have.
    """

    parameter: str
    is_pattern: bool = False
    source: str = ""
    skip: bool = False
    state: str = ""
    resize: bool = False


@dataclass(frozen=True)
class WarmStart:
    """First values of a job: the parameters of `source`.

    `source` is `DIR` or `DIR#ID` of cuts, or the directory of a saved model. Pservers read it, so
    it is an absolute path that all of them have, or a URL. The first rule that matches a parameter
    counts. `unused` are regular expressions of names in the source that the job is not to use. If
    `strict`, parameters that are missing, unused or of another shape, where no rule says so, are
    an error.
    """

    source: str
    rules: tuple[WarmRule, ...] = ()
    unused: tuple[str, ...] = ()
    strict: bool = False
