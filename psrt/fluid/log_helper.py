"""Loggers as programs of Fluid ask for them."""

from __future__ import annotations

import logging


def get_logger(name: str, level: int | str, fmt: str | None = None) -> logging.Logger:
    """Return the logger `name` at `level`, which writes lines of `fmt` to stderr."""
    logger = logging.getLogger(name)
    logger.setLevel(level)
    if not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter(fmt))
        logger.addHandler(handler)
    logger.propagate = False
    return logger


__all__ = ["get_logger"]
