"""The Helm chart as objects, rendered by Helm itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

CHART = Path(__file__).parents[2] / "deploy" / "kubernetes" / "psrt"
NAMESPACE = "ads"


def rendered(values: Mapping[str, Any], name: str = "clicks") -> list[dict[str, Any]]:
    """All objects that Helm makes of the chart; skips the test where Helm is not installed."""
    helm = pytest.importorskip("helm_python", reason="needs helm-python-sdk, which renders charts")
    yaml = pytest.importorskip("yaml")
    with helm.Chart.load(str(CHART)) as chart:
        texts = chart.render(dict(values), name=name, namespace=NAMESPACE)
    files = [text for path, text in texts.items() if path.endswith(".yaml")]
    return [each for text in files for each in yaml.safe_load_all(text) if each]


def of_kind(objects: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [each for each in objects if each["kind"] == kind]


def workloads(objects: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Role → Job or StatefulSet; those of a JobSet by the names that its controller gives."""
    found = of_kind(objects, "Job") + of_kind(objects, "StatefulSet")
    for jobset in of_kind(objects, "JobSet"):
        for each in jobset["spec"]["replicatedJobs"]:
            name = f"{jobset['metadata']['name']}-{each['name']}-0"
            head = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}}
            found.append(head | {"spec": each["template"]["spec"]})
    labels = [each["spec"]["template"]["metadata"]["labels"] for each in found]
    roles = [each["app.kubernetes.io/component"] for each in labels]
    return dict(zip(roles, found, strict=True))


def pod(objects: Sequence[dict[str, Any]], role: str) -> dict[str, Any]:
    """The spec of the pods of a role."""
    found = workloads(objects)[role]["spec"]["template"]["spec"]
    assert isinstance(found, dict)
    return found


def variables(container: Mapping[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"] if "value" in each}
