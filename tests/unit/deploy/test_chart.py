"""The Helm chart: rendered by Helm, linted, and checked against the schemas of Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

import psrt
from psrt.cli.pserver import pserver
from psrt.cli.trainer import trainer
from psrt.config.load import load
from psrt.config.sections import PserverConfig, TrainerConfig
from psrt.core.errors import CATALOGUE
from tests.support.chart import CHART, of_kind, pod, rendered, variables, workloads

yaml = pytest.importorskip("yaml")
helm = pytest.importorskip("helm_python", reason="needs helm-python-sdk, which renders charts")
kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="has the schemas of APIs")

VERSIONS = ("1.30", "1.33", "1.37")
PLAIN = {"insecure": True, "job": {"file": "job.toml", "files": {"job.toml": "", "net/net.py": ""}}}
ALL = {
    "job": {"file": "clicks/job.toml", "files": {"clicks/job.toml": "a", "net/net.py": "b"}},
    "image": {"repository": "registry/psrt", "tag": "2", "pullSecrets": ["pull"]},
    "settings": {"communication": {"mode": "async"}, "pserver": {"stripes": 4}},
    "pservers": {
        "count": 3,
        "arguments": ["--ports-num", 2],
        "env": [{"name": "AWS_REGION", "value": "x"}],
        "podAnnotations": {"note": "a"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "cpu", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
    },
    "trainers": {"count": 4, "restarts": 3},
    "checkpoints": {"enabled": True, "storageClass": "nfs"},
    "tls": {"secret": "clicks-tls"},
    "tokens": {"pservers": {"secret": "tokens"}, "trainers": {"secret": "token"}},
    "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "clicks"}}],
    "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
    "networkPolicy": {
        "metricsFrom": [{"namespaceSelector": {}}],
        "egress": [{"ports": [{"port": 443}]}],
    },
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "serviceAccountName": "trainer",
}
WORKLOADS = ("jobs", "jobset", "statefulset")


def refusal(values: Mapping[str, Any]) -> str:
    with pytest.raises(helm.HelmError) as caught:
        rendered(values)
    return str(caught.value)


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("values", [PLAIN, ALL], ids=["plain", "all"])
@pytest.mark.parametrize("version", VERSIONS)
def test_objects_fit_the_schemas_of_kubernetes(
    version: str, values: dict[str, Any], workload: str
) -> None:
    objects = rendered({**values, "workload": workload})

    known = [each for each in objects if each["kind"] not in ("JobSet", "ServiceMonitor")]
    for each in (*known, *workloads(objects).values()):
        kubernetes_validate.validate(each, version, strict=True)
    kinds = {each["kind"] for each in known}
    assert {"Service", "ConfigMap", "PodDisruptionBudget", "NetworkPolicy"} <= kinds


def test_the_schema_check_finds_a_misspelt_field() -> None:
    (job, *_) = of_kind(rendered(PLAIN), "Job")
    job["spec"]["template"]["spec"]["containers"][0]["readinesProbe"] = {}

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(job, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_helm_has_nothing_to_warn_of(workload: str) -> None:
    report = helm.lint(str(CHART), {**ALL, "workload": workload}, strict=True)

    assert report["errors"] == []
    assert [each for each in report["messages"] if each["severity"] > 1] == []


def test_settings_of_all_pods_exist() -> None:
    objects = rendered(ALL)

    of_pserver = variables(pod(objects, "pserver")["containers"][0])
    of_trainer = variables(pod(objects, "trainer")["containers"][0])

    loaded = (
        load(PserverConfig, flags={}, environ=of_pserver).config,
        load(TrainerConfig, flags={}, environ=of_trainer).config,
    )
    for settings in loaded:
        assert settings.token_file.startswith("/etc/psrt/tokens/")
        assert settings.tls_cert == "/etc/psrt/tls/tls.crt"
        assert not settings.insecure


@pytest.mark.parametrize(("role", "command"), [("pserver", pserver), ("trainer", trainer)])
def test_arguments_are_flags_of_the_command(role: str, command: Any) -> None:
    name, *arguments = pod(rendered(ALL), role)["containers"][0]["args"]

    assert name == role
    parsed = command.make_context(role, list(arguments), resilient_parsing=True)
    assert all(word.startswith("/") for word in parsed.args)


def test_settings_of_the_values_precede_those_of_the_chart() -> None:
    values = {
        **PLAIN,
        "settings": {"trainer": {"connect_timeout_s": 5}, "data": {"train": ["a", "b"]}},
    }

    given = variables(pod(rendered(values), "trainer")["containers"][0])

    assert given["PSRT_TRAINER_CONNECT_TIMEOUT_S"] == "5"
    assert given["PSRT_DATA_TRAIN"] == "a,b"


@pytest.mark.parametrize("workload", WORKLOADS)
def test_endpoints_are_the_names_that_kubernetes_gives_the_pods(workload: str) -> None:
    objects = rendered({**ALL, "workload": workload})
    arguments = pod(objects, "trainer")["containers"][0]["args"]
    endpoints = arguments[arguments.index("--endpoints") + 1].split(",")

    # The host name of a pod: the name of its Job or StatefulSet, and its number.
    name, subdomain = (
        workloads(objects)["pserver"]["metadata"]["name"],
        pod(objects, "pserver")["subdomain"],
    )
    assert endpoints == [f"{name}-{index}.{subdomain}.ads.svc:6170" for index in range(3)]
    (service,) = [e for e in of_kind(objects, "Service") if e["metadata"]["name"] == subdomain]
    labels = workloads(objects)["pserver"]["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    assert service["spec"]["clusterIP"] == "None"


def test_pservers_are_asked_by_http_whether_they_serve() -> None:
    container = pod(rendered(PLAIN), "pserver")["containers"][0]

    pages = {
        name: container[f"{name}Probe"]["httpGet"]["path"]
        for name in ("startup", "readiness", "liveness")
    }
    assert pages == {"startup": "/healthz", "readiness": "/readyz", "liveness": "/healthz"}
    assert {"name": "metrics", "containerPort": 9170} in container["ports"]
    assert container["args"][container["args"].index("--metrics") + 1] == "0.0.0.0:9170"


@pytest.mark.parametrize("role", ["pserver", "trainer"])
def test_containers_have_no_rights_and_write_to_their_volumes_alone(role: str) -> None:
    found = pod(rendered(ALL), role)

    assert found["securityContext"]["runAsNonRoot"] is True
    assert found["automountServiceAccountToken"] is False
    for container in found["containers"]:
        context = container["securityContext"]
        assert context["readOnlyRootFilesystem"] is True
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
    secrets = [each["secret"] for each in found["volumes"] if "secret" in each]
    assert [each["defaultMode"] for each in secrets] == [0o400, 0o400]


def test_a_stopped_pserver_of_a_job_is_replaced_and_has_time_for_a_cut() -> None:
    objects = rendered(ALL)
    given = variables(pod(objects, "pserver")["containers"][0])
    settings = load(PserverConfig, flags={}, environ=given).config

    assert settings.stopped_exit_code != 0
    assert settings.recover
    assert settings.checkpoint_dir == "/var/lib/psrt/cuts"
    grace_s = pod(objects, "pserver")["terminationGracePeriodSeconds"]
    assert grace_s > 2 * settings.checkpoint_grace_s


def test_a_statefulset_of_pservers_stays_and_starts_all_at_once() -> None:
    objects = rendered({**PLAIN, "workload": "statefulset"})
    (found,) = of_kind(objects, "StatefulSet")

    assert found["spec"]["podManagementPolicy"] == "Parallel"
    assert variables(pod(objects, "pserver")["containers"][0])["PSRT_PSERVER_STAY"] == "true"


def test_a_jobset_starts_trainers_last_and_succeeds_with_them() -> None:
    (found,) = of_kind(rendered({**PLAIN, "workload": "jobset"}), "JobSet")

    assert found["spec"]["startupPolicy"] == {"startupPolicyOrder": "InOrder"}
    assert [each["name"] for each in found["spec"]["replicatedJobs"]] == ["pserver", "trainer"]
    assert found["spec"]["successPolicy"] == {
        "operator": "All",
        "targetReplicatedJobs": ["trainer"],
    }


def test_mistakes_are_not_tried_again() -> None:
    policy = workloads(rendered(PLAIN))["trainer"]["spec"]["podFailurePolicy"]

    codes = set(policy["rules"][0]["onExitCodes"]["values"])
    specs = [spec for spec in CATALOGUE.values() if spec.exit_code in codes]
    assert codes <= {spec.exit_code for spec in CATALOGUE.values()}
    assert not any(spec.retryable for spec in specs)


@pytest.mark.parametrize(
    ("checkpoints", "restarts", "available"),
    [(True, 3, {"pserver": 2, "trainer": 3}), (False, 0, {"pserver": 3, "trainer": 4})],
)
def test_a_node_may_be_drained_only_where_others_go_on(
    checkpoints: bool, restarts: int, available: dict[str, int]
) -> None:
    trainers = {"count": 4, "restarts": restarts}
    objects = rendered({**ALL, "checkpoints": {"enabled": checkpoints}, "trainers": trainers})

    found = of_kind(objects, "PodDisruptionBudget")
    numbers = {
        each["metadata"]["name"].removeprefix("clicks-"): each["spec"]["minAvailable"]
        for each in found
    }
    assert numbers == available


def test_files_of_the_job_are_where_the_command_reads_them() -> None:
    objects = rendered(ALL)
    (files,) = of_kind(objects, "ConfigMap")
    found = pod(objects, "trainer")
    (volume,) = [each["configMap"] for each in found["volumes"] if each["name"] == "job"]

    assert {each["path"]: files["data"][each["key"]] for each in volume["items"]} == ALL["job"][
        "files"
    ]
    assert found["containers"][0]["args"][-1] == "/srv/job/clicks/job.toml"


def test_unencrypted_traffic_has_to_be_asked_for() -> None:
    assert "Set tls.secret, or insecure=true" in refusal({"job": {"file": "a.toml"}})


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({**PLAIN, "pserver": {"count": 2}}, "pserver"),
        ({**PLAIN, "pservers": {"count": 0}}, "/pservers"),
        ({**PLAIN, "pservers": {"replicas": 2}}, "replicas"),
        ({**PLAIN, "trainers": {"port": 1}}, "port"),
        ({**PLAIN, "workload": "deployment"}, "workload"),
        ({"insecure": True}, "/job/file"),
    ],
)
def test_values_that_do_not_exist_are_refused(values: dict[str, Any], reason: str) -> None:
    assert reason in refusal(values)


def test_the_schema_has_every_value() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())["properties"]

    assert set(values) == set(schema) - {"global"}
    for name, given in values.items():
        known = schema[name].get("propertyNames", {}).get("enum") or schema[name].get("properties")
        if isinstance(given, dict) and known:
            assert set(given) == set(known), name


def test_the_chart_has_the_version_of_psrt() -> None:
    found = yaml.safe_load((CHART / "Chart.yaml").read_text())

    assert found["version"] == found["appVersion"] == psrt.__version__
