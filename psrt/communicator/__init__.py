"""How a trainer's gradients reach the pservers and how parameters come back.

Reading order: `base` says what every communicator promises the trainer, `router` turns gradients
into parts per pserver and replies into whole parameters, `snapshots` keeps the buffers parameters
arrive in, `lanes` is one thread per pserver, `pservers` speaks to all of them at once, then the
modes: `sync` (rounds), `merge_queue` and `async_` (apply on arrival); `factory` chooses.
"""
