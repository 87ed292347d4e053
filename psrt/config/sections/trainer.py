"""The section `[trainer]`: settings of a trainer process."""

from __future__ import annotations

from dataclasses import dataclass

from psrt.config.sections import fields
from psrt.config.settings import setting
from psrt.core.errors import ConfigError


@dataclass(frozen=True)
class TrainerConfig:
    """One trainer process."""

    job: str = setting("", "Job file (TOML), or a script.", positional="JOB.toml|train.py")
    endpoints: tuple[str, ...] = fields.endpoints()
    trainers: int = setting(
        1,
        "Number of trainers of the job.",
        minimum=1,
        role_variables=("PADDLE_TRAINERS_NUM", "PADDLE_INIT_NUM_GRADIENT_SERVERS"),
    )
    trainer_id: int = setting(
        0,
        "Number of this trainer, from 0.",
        minimum=0,
        role_variables=(
            "PADDLE_TRAINER_ID",
            "PADDLE_INIT_TRAINER_ID",
            "OMPI_COMM_WORLD_RANK",
            "SLURM_PROCID",
        ),
    )
    trainer_endpoints: tuple[str, ...] = setting(
        (),
        "Endpoints of all trainers, host:port, or that of trainer 0: they meet there in mode "
        "collective.",
        role_variables=("PADDLE_TRAINER_ENDPOINTS",),
    )
    device: int = setting(
        -1,
        "Number of the GPU of this trainer, over which gradients travel by NCCL in mode "
        "collective; -1 = none, they travel by gloo.",
        minimum=-1,
        role_variables=("FLAGS_selected_gpus",),
    )
    local: bool = setting(False, "Train without pservers: this one trainer holds all parameters.")
    run: str = fields.run("pservers of another one refuse this trainer")
    carrier: str = fields.carrier()
    token_file: str = fields.token_file(
        "the one that this trainer proves; empty = none", "psrt.token"
    )
    tls_ca: str = fields.tls_ca("connections are encrypted; empty = they are not")
    tls_cert: str = fields.tls_cert()
    tls_key: str = fields.tls_key()
    insecure: bool = fields.insecure("this trainer, in a global shuffle,")
    cpu_threads: int = fields.cpu_threads()
    cpu_num: int = fields.cpu_num()
    scheduling: str = fields.scheduling()
    busy_poll_us: int = fields.busy_poll_us()
    connect_timeout_s: float = setting(
        120.0, "Longest wait for a pserver that is not up yet, in seconds.", minimum=0.001
    )
    call_timeout_s: float = setting(
        180.0, "Longest wait for the reply to one call, in seconds.", minimum=0.001
    )
    report: str = setting("", "JSON file for the summary of the run.")
    state: str = setting(
        "",
        "JSON file for the position in the data, written after each epoch and at a stop; "
        "with several trainers, run.json becomes run.trainer-0.json and so on.",
    )
    resume: str = setting(
        "", "File of an earlier --state, to continue behind its position in the data."
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
    profile: str = setting(
        "", "JSON file for a timeline of the training, for Perfetto; also prints time by op."
    )
    on_nan: str = setting(
        "stop",
        "Reaction to a loss, or with skip a gradient, that is infinite or NaN: end with an "
        "error, leave the step out, or go on unchecked.",
        choices=("stop", "skip", "continue"),
    )
    save: str = setting("", "Directory to save the model to (written by trainer 0).")
    save_every_steps: int = setting(
        0,
        "Steps of trainer 0 between two models that are saved while training goes on, to "
        "DIR-step-N beside --save DIR; 0 = none.",
        minimum=0,
    )
    save_every_epochs: int = setting(
        0, "Epochs of trainer 0 between two such models; 0 = none.", minimum=0
    )
    save_total_limit: int = setting(
        0, "Newest models to keep of those saved while training goes on; 0 = all.", minimum=0
    )
    callbacks: tuple[str, ...] = setting(
        (),
        "Functions to call after each epoch of trainer 0, as module:function; training ends if one "
        "returns True.",
    )
    evaluate: str = setting("", "Saved model to test instead of training.")
    curves: str = setting(
        "",
        "File for the course of the training, progress lines and validations: JSON lines, or CSV "
        "if its name ends with .csv.",
    )
    tensorboard: str = setting(
        "", "Directory for event files of TensorBoard with the same values (extra tensorboard)."
    )
    metrics: str = fields.metrics()
    trace_every: int = fields.trace_every()
    cache_dir: str = fields.cache_dir()
    log_level: str = fields.log_level()
    log_format: str = fields.log_format()
    log_every_s: float = setting(2.0, "Seconds between progress lines.", minimum=0.0)

    def __post_init__(self) -> None:
        if self.trainer_id >= self.trainers:
            raise ConfigError(
                f"trainer_id is {self.trainer_id}, but the job has {self.trainers} trainer(s).",
                hint="Ids count from 0; give every trainer the same --trainers.",
            )
        if self.local and (self.trainers > 1 or self.endpoints):
            raise ConfigError(
                "local is set, but so are other trainers or endpoints of pservers; "
                "a local training has neither.",
                hint="Leave out --local to train in a cluster, --trainers and --endpoints not to.",
            )
        fields.check_endpoints(self.endpoints)
