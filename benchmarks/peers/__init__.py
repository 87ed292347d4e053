"""The other side of comparisons with PyTorch; every file here needs torch.

In reading order:

    torch_models  four models, written with psrt's layers and in torch
    torch_sides   one model, trained by psrt and by torch
    torch_fused   fused optimizers, a program that W4 starts
"""
