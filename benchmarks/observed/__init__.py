"""The cost of being looked into: `python -m benchmarks.observed`.

__main__  W1 with metrics, JSON logs and polled pages, and without, in turn
"""
