"""W1's network by processes without pservers, beside torch's DDP.

__main__  the command: `python -m benchmarks.w11_collective`
"""
