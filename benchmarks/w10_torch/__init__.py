"""Tables of `psrt.torch` beside torch's own.

In reading order:

    loops     loops of torch in one process, whose table is psrt's or torch's own
    sides     W1's network in loops of torch: ranks of psrt and of DDP
    rpc_side  W1's network by a parameter server of torch.distributed.rpc
    torchrec_side  W1's network by TorchRec, where it is installed
    cluster   ranks and servers of every side as processes, one side after the other
"""
