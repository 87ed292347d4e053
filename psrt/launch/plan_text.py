"""A plan as text, for `psrt launch --dry-run`: who runs where, with which command."""

from __future__ import annotations

import shlex

from psrt.launch.plan import Command, HostOf, Plan


def commands_text(plan: Plan, host_of: HostOf) -> str:
    """Return the environment and each process with its host and command, as a shell takes them.

    Pservers choose free ports, so those are words here: `PORT_OF_PSERVER_0`.
    """
    pservers = plan.pservers(host_of)
    endpoints = [f"{host_of(each.child)}:PORT_OF_PSERVER_{each.child.index}" for each in pservers]
    lines = ["# environment of every process"]
    variables = plan.variables if plan.config.on == "local" else {**plan.carried, **plan.variables}
    lines += [f"{name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    for command in (*pservers, *plan.trainers(endpoints, host_of=host_of)):
        lines += ["", f"# {command.child} on {host_of(command.child)}, log {command.log}"]
        lines.append(command_line(command))
    return "\n".join(lines)


def command_line(command: Command) -> str:
    """Return a command as a shell takes it, the flags on lines of their own."""
    lines: list[str] = []
    for word in map(shlex.quote, command.arguments):
        if word.startswith("--") or not lines:
            lines.append(word)
        else:
            lines[-1] += f" {word}"
    return " \\\n  ".join(lines)
