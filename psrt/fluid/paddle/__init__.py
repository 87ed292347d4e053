"""The name `paddle` for programs that import it: `psrt.fluid.install_as_paddle()`.

compat   texts and bytes, as `paddle.compat` has them
dataset  readers of local copies of public data sets
version  the newest version whose Fluid psrt has
install  an import hook that finds `paddle.fluid…` in `psrt.fluid…`
"""

from psrt.fluid.paddle.install import install_as_paddle

__all__ = ["install_as_paddle"]
