"""kubernetes: a launch as one release of the Helm chart, whose manifests have no other source.

chart      the chart of `deploy/kubernetes`, rendered by Helm
values     values of the chart for a plan
pod_facts  pods and Jobs as the API server describes them
kubectl    commands of kubectl: once, and followed
pod_child  a process of a launch in a pod, or in one after the other
"""

from psrt.launch.kubernetes.chart import Release, rendered
from psrt.launch.kubernetes.kubectl import Followed, Kubectl
from psrt.launch.kubernetes.pod_child import PodChild
from psrt.launch.kubernetes.pod_facts import JobFacts, PodFacts, first_failures, read_facts
from psrt.launch.kubernetes.values import host_name, release_name, values_of

__all__ = ["Followed", "JobFacts", "Kubectl", "PodChild", "PodFacts", "Release", "read_facts"]
__all__ += ["first_failures", "host_name", "release_name", "rendered", "values_of"]
