"""Compile all kernels of psrt into a directory: compile_kernels.py DIRECTORY."""

import importlib
import pkgutil
import sys

from psrt import kernels
from psrt.kernels.jit import set_cache_dir, warm_up

set_cache_dir(sys.argv[1])
for module in pkgutil.walk_packages(kernels.__path__, "psrt.kernels."):
    importlib.import_module(module.name)
print(f"kernels compiled in {warm_up():.0f} s")
