"""The section `[launch]`: settings of a cluster, on this host or by an engine on others."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.sections import fields
from psrt.config.settings import setting
from psrt.core.errors import ConfigError
from psrt.core.specs import MODES

ENGINES = {
    "local": "processes of this host",
    "ssh": "processes of --hosts, over SSH",
    "mpi": "ranks of one mpirun",
    "slurm": "a job of Slurm, or steps of the one that this is",
    "kubernetes": "pods of the Helm chart of psrt",
    "ray": "actors of a Ray cluster",
}
"""Engines that start processes: name → description; `psrt.launch.engines.table` has their rows."""

_ON = "The processes are " + "; ".join(f"{name} = {what}" for name, what in ENGINES.items()) + "."


@dataclass(frozen=True)
class LaunchConfig:
    """A cluster: pservers and trainers as processes of this host, or by an engine on others."""

    job: str = setting("", "Job file (TOML), or a script.", positional="JOB.toml|train.py")
    on: str = setting("local", _ON, choices=tuple(ENGINES))
    hosts: str = setting(
        "", "Hosts for the processes: a list with slots, such as a:2,b:2, or a file, one a line."
    )
    bring: tuple[str, ...] = setting(
        (),
        "Files to send to the hosts along with job file and program: patterns below the job's "
        "directory, such as *.py; empty = the hosts share that directory.",
    )
    python: str = setting(
        "", "Python of the hosts, with psrt installed; empty = the path of this one."
    )
    ssh_config: str = setting("", "Configuration file of OpenSSH; empty = ~/.ssh/config.")
    mpirun: str = setting(
        "mpirun", "Command of MPI with further flags, as in a shell, for --on mpi."
    )
    slurm: str = setting(
        "",
        "Flags of sbatch for pservers and for trainers, as in a shell, such as '--time=4:00:00 "
        "--partition=cpu'.",
    )
    address: str = setting(
        "",
        "Own address that the ranks of --on mpi reach; empty = that towards the first of --hosts, "
        "or 127.0.0.1 without any.",
    )
    namespace: str = setting("", "Namespace of Kubernetes; empty = that of kubectl's context.")
    chart_values: str = setting(
        "", "YAML file of values for the Helm chart, such as image, tls, volumes and resources."
    )
    ray_address: str = setting(
        "", "Address of the head of the Ray cluster, host:port; empty = RAY_ADDRESS, or that here."
    )
    pservers: int = setting(2, "Number of pservers to start.", minimum=1)
    trainers: int = setting(2, "Number of trainers to start.", minimum=1)
    selected_devices: tuple[str, ...] = setting(
        (),
        "Numbers of GPUs, one trainer for each, whose gradients travel over them in mode "
        "collective; empty = trainers of CPUs.",
    )
    runs: str = setting(
        "runs", "Directory in which each launch makes one of its own, NAME-TIME, and links latest."
    )
    log_dir: str = setting(
        "",
        "Directory for all files of this launch: logs, ready files, reports; empty = a new one in "
        "runs.",
    )
    carrier: str = fields.carrier()
    cpu_threads: int = fields.cpu_threads()
    cpu_num: int = fields.cpu_num()
    metrics: str = setting(
        "",
        "Interface and first port, host:port, of metrics: the pservers take it and those behind it "
        "in their order, then the trainers in theirs; port 0 = any free ones, empty = none.",
    )
    trace_every: int = fields.trace_every()
    report: str = setting("", "JSON file for the merged summary of the run.")
    profile: str = setting(
        "",
        "JSON file for timelines, one per trainer: out.json becomes out.trainer-0.json and so on.",
    )
    pserver_args: str = setting(
        "", "Further flags of every pserver, as in a shell, such as '--stripes 4'; no secrets."
    )
    trainer_args: str = setting("", "Further flags of every trainer, as in a shell; no secrets.")
    save: str = setting("", "Directory to save the model to (written by trainer 0).")
    checkpoint_dir: str = setting(
        "", "Directory or fsspec URL for cuts, in place of that of [pserver]; empty = that one."
    )
    resume: str = setting(
        "",
        "Begin with this cut of checkpoint_dir: a number, latest, or auto = the latest if there is "
        "one; empty = begin anew.",
    )
    recoveries: int = setting(
        10,
        "Killed pservers that are started again, in all, if [job] durability is not none.",
        minimum=0,
    )
    standby: bool = setting(
        True,
        "Keep a process ready that takes the place of the next killed pserver, if [job] durability "
        "is not none; it takes about 200 MiB.",
    )
    restarts: int = setting(
        0,
        "Killed trainers that are started again, in all, and go on where they were; not in geo, "
        "nor with on_trainer_loss = abort.",
        minimum=0,
    )
    warm_start: str = setting(
        "",
        "Source of first values in place of the job's: DIR or DIR#ID of cuts, or a saved model.",
        alias="--load",
    )
    warm_start_map: str = setting("", "Rules of the warm start in place of the job's (TOML).")
    warm_start_strict: bool = setting(
        False, "Parameters that the warm start does not match are an error."
    )
    grace_s: float = setting(
        10.0, "Seconds between the request to a process to end and its kill.", minimum=0.0
    )
    ready_timeout_s: float = setting(
        120.0, "Longest wait for all pservers to serve, in seconds.", minimum=0.001
    )
    mode: str = setting(
        "", "Communication mode in place of the job's; empty = the job's.", choices=("", *MODES)
    )
    epochs: int = setting(0, "Epochs in place of the job's; 0 = the job's.", minimum=0)

    def __post_init__(self) -> None:
        host, _, port = self.metrics.rpartition(":")
        if self.metrics and not (host and port.isdecimal()):
            raise ConfigError(
                f"metrics is {self.metrics!r}, which is not host:port.",
                hint="Write --metrics 127.0.0.1:9170; port 0 is any free one for each process.",
            )
