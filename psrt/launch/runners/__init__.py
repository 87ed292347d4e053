"""runners: processes on other hosts that start the processes of a launch there.

A runner starts commands, passes their output on, and ends them when its launcher ends or is silent.

messages       lines of JSON between a launcher and its runners
started        a process that a runner has started
uplink         a runner's connection to its launcher
runner         the loop of a runner
remote_child   a process on another host, as its launcher has it
links          a launcher's connections to runners
listening      a launcher's port for runners that dial it
connection     a runner, as its launcher has it
runner_engine  an engine that starts processes by runners
"""

from psrt.launch.runners.connection import RunnerConnection
from psrt.launch.runners.links import Link, PipeLink
from psrt.launch.runners.listening import RunnerPort, SocketLink
from psrt.launch.runners.messages import Message, message_in, packed
from psrt.launch.runners.remote_child import RemoteChild
from psrt.launch.runners.runner_engine import Reach, RunnerEngine, runner_command
from psrt.launch.runners.started import Started
from psrt.launch.runners.uplink import KEY_VARIABLE, proof_of

__all__ = ["KEY_VARIABLE", "Link", "Message", "PipeLink", "Reach"]
__all__ += ["RemoteChild", "RunnerConnection", "RunnerEngine", "RunnerPort", "SocketLink"]
__all__ += ["Started", "message_in", "packed", "proof_of", "runner_command"]
