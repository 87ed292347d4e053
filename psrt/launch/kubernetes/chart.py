"""The chart rendered by the command `helm`, or by its SDK where there is no such command."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psrt.core.errors import ConfigError
from psrt.core.extras import required

CHART = Path(__file__).with_name("chart").resolve()
_KEPT = "helm.sh/resource-policy: keep"
_RENDER_S = 60.0


@dataclass(frozen=True)
class Release:
    """The objects of a launch as YAML; those `kept` outlive it, and may be there already."""

    name: str
    namespace: str
    objects: str
    kept: str


def rendered(name: str, namespace: str, values_file: str, values: Mapping[str, Any]) -> Release:
    """Render the chart; `values` precede those of the file. Raises `ConfigError`."""
    if helm := shutil.which("helm"):
        text = _by_command(helm, name, namespace, values_file, values)
    else:
        text = _by_sdk(name, namespace, values_file, values)
    documents = [each.strip("\n") for each in f"\n{text}\n".split("\n---") if "\nkind: " in each]
    kept = [each for each in documents if _KEPT in each]
    others = [each for each in documents if _KEPT not in each]
    return Release(name, namespace, _joined(others), _joined(kept))


def _joined(documents: list[str]) -> str:
    return "".join(f"---\n{each}\n" for each in documents)


def _by_command(
    helm: str, name: str, namespace: str, values_file: str, values: Mapping[str, Any]
) -> str:
    words = [helm, "template", name, str(CHART), "--namespace", namespace]
    words += ["--values", values_file] if values_file else []
    done = subprocess.run(
        [*words, "--values", "-"],
        input=json.dumps(values),
        capture_output=True,
        text=True,
        timeout=_RENDER_S,
    )
    if done.returncode:
        raise _refused(done.stderr)
    return done.stdout


def _by_sdk(name: str, namespace: str, values_file: str, values: Mapping[str, Any]) -> str:
    helm = required("helm_python", "kubernetes", "--on kubernetes, without a command helm,")
    try:
        given = helm.values_from_yaml(Path(values_file).read_text()) if values_file else {}
        with helm.Chart.load(str(CHART)) as chart:
            files = chart.render(_merged(given or {}, values), name=name, namespace=namespace)
    except OSError as error:
        raise ConfigError(
            f"--chart-values {values_file}: {error.strerror}.", hint="Name a file of YAML."
        ) from error
    except helm.HelmError as error:
        raise _refused(str(error)) from error
    yaml = (text for path, text in sorted(files.items()) if path.endswith(".yaml"))
    return "".join(f"---\n{text}\n" for text in yaml)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for name, value in above.items():
        known = merged.get(name)
        if isinstance(value, Mapping) and isinstance(known, Mapping):
            value = _merged(known, value)
        merged[name] = value
    return merged


def _refused(why: str) -> ConfigError:
    return ConfigError(
        f"Helm cannot render the chart of psrt for this launch: {why.strip()}",
        hint="Correct --chart-values; values.yaml of the chart explains every value.",
    )
