"""doctor: what is wrong with a host or a running job, and what to do about it.

findings        one thing that is wrong, and its remedy
host_facts      facts of this host, read once
host_checks     findings of a host
reachability    why a pserver does not answer: name, port, encryption, another server
cluster_checks  findings of a job, from the facts of its pservers

Facts are read first; checks are plain functions of them.
"""

from psrt.doctor.cluster_checks import check_cluster
from psrt.doctor.findings import Finding
from psrt.doctor.host_checks import check_host
from psrt.doctor.host_facts import HostFacts, host_facts
from psrt.doctor.reachability import check_reachability

__all__ = ["Finding", "HostFacts", "check_cluster", "check_host", "check_reachability"]
__all__ += ["host_facts"]
