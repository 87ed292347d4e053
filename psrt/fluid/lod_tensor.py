"""`fluid.lod_tensor`: tensors of sequences, by PaddlePaddle's module path."""

from psrt.fluid.running import create_lod_tensor, create_random_int_lodtensor

__all__ = ["create_lod_tensor", "create_random_int_lodtensor"]
