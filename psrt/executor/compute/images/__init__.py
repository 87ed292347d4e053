"""images: files in reading order.

tiles        the tiles of a convolution, and memory for them
convolution  convolution and its gradients: a matrix product for each tile
pools        maxima and means of windows
"""

from psrt.executor.compute.images import convolution, pools, tiles

__all__ = ["convolution", "pools", "tiles"]
