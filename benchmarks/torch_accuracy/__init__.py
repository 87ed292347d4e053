"""Accuracy of `psrt.torch` beside PyTorch's own embeddings, on real clicks.

In reading order:

    clicks     a table of Criteo as arrays, with a tenth of its rows set aside
    models     two networks over any bag of embeddings
    trainings  one epoch in PyTorch, in one process with psrt.torch, and as a rank of several
    one_training  one of them, as a script
"""
