"""`python -m psrt.fluid script.py args`: runs a program that imports paddle, as it stands."""

from __future__ import annotations

import os
import runpy
import sys

from psrt.fluid.paddle import install_as_paddle


def main(arguments: list[str]) -> int:
    """Run the script that the arguments begin with, under its own; returns 2 without one."""
    if not arguments:
        print("usage: python -m psrt.fluid SCRIPT [ARGUMENT …]", file=sys.stderr)
        return 2
    sys.argv[:] = arguments
    sys.path[0] = os.path.dirname(os.path.abspath(arguments[0]))
    install_as_paddle()
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
