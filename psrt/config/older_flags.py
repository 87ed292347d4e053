"""Flags of PaddlePaddle's v2 commands that psrt does not have, and what to write instead.

Names are v2's, with underscores. Errors of `psrt` and `psrt.init` quote this table.
"""

from __future__ import annotations

_BUFFERS = "Leave it out: the system sizes the buffers of sockets."
_TO_ENDPOINTS = "Give trainers the pservers by --endpoints host:port,host:port."
_BALANCE = "Leave it out: rows are spread by a hash of their ids, so no pserver gets most of them."
_STALE = 'Bound how far trainers are apart: [communication] mode = "ssp", max_steps_ahead.'
_STRAGGLERS = "Leave it out: a wait that ends names the trainers that are missing."
_SAVING = "psrt trainer --save DIR writes the model when training ends."
_INITIAL = "psrt trainer --warm-start DIR begins with the parameters of a saved model or of a cut."
_MISSING = "--warm-start reports missing parameters; --warm-start-strict makes them an error."
_LOG = "psrt trainer --log-every-s is the time between lines of progress."
_EVERY = "Leave it out: parameters have no statistics to be shown."

INSTEAD: dict[str, str] = {
    "async_count": 'Write [communication] mode = "async" into the job.',
    "async_lagged_ratio_default": _STALE,
    "async_lagged_ratio_min": _STALE,
    "check_sparse_distribution_batches": _BALANCE,
    "check_sparse_distribution_in_pserver": _BALANCE,
    "check_sparse_distribution_ratio": _BALANCE,
    "check_sparse_distribution_unbalance_degree": _BALANCE,
    "config_args": "Write [job.params] into the job.",
    "distribute_test": "Leave it out: trainer 0 tests, with the parameters of all pservers.",
    "dot_period": _LOG,
    "gpu_id": "Leave it out: psrt computes on CPUs.",
    "init_model_path": _INITIAL,
    "load_missing_parameter_strategy": _MISSING,
    "loadsave_parameters_in_pserver": _SAVING,
    "log_barrier_abstract": _STRAGGLERS,
    "log_barrier_lowest_nodes": _STRAGGLERS,
    "log_barrier_threshold": _STRAGGLERS,
    "log_period": _LOG,
    "log_period_server": _LOG,
    "nics": "psrt pserver --host is the address of the interface to listen on.",
    "num_gradient_servers": "The number of trainers is --trainers here.",
    "num_passes": "Write [data] epochs into the job.",
    "parameter_block_size": "Write [partition] min_block_size into the job.",
    "parameter_block_size_for_sparse": "Leave it out: rows are spread one by one.",
    "port": _TO_ENDPOINTS,
    "ports_num": "Leave it out: pservers tell trainers their data ports.",
    "ports_num_for_sparse": "Leave it out: pservers tell trainers their data ports.",
    "pserver_num_threads": "psrt pserver --stripes is how many parts of a table work at once.",
    "pservers": _TO_ENDPOINTS,
    "rdma_tcp": "Leave it out: psrt talks TCP, and Unix sockets within a host.",
    "save_dir": _SAVING,
    "saving_period": _SAVING,
    "saving_period_by_batches": _SAVING,
    "seed": "The seed belongs to the program: psrt.program(seed=...).",
    "show_parameter_stats_period": _EVERY,
    "small_messages": _BUFFERS,
    "sock_recv_buf_size": _BUFFERS,
    "sock_send_buf_size": _BUFFERS,
    "start_pass": "Leave it out: training starts with the first pass.",
    "start_pserver": "psrt pserver starts a pserver, psrt trainer a trainer.",
    "test_period": "Leave it out: trainer 0 tests when training ends.",
    "trainer_count": "psrt trainer --cpu-num is the number of replicas in a trainer.",
    "use_gpu": "Leave it out: psrt computes on CPUs.",
}
"""Flag → what to do."""


def instead_of(name: str) -> str:
    """Return the replacement of a flag, `--log-period` or `log_period`; empty if v2 had no such."""
    return INSTEAD.get(name.lstrip("-").replace("-", "_"), "")
