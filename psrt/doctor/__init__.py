"""doctor: what is wrong with a host or a running job, and what to do about it.

findings        one thing that is wrong, and its remedy
host_facts      facts of this host, read once
host_checks     findings of a host
reachability    why a pserver does not answer: name, port, encryption, token, another server
cluster_checks  findings of a job, from the facts of its pservers
cut_checks      damaged cuts
processes       processes of psrt on this host, with their stacks
dump            one report about a job that hangs

Facts are read first; checks are plain functions of them.
"""

from psrt.doctor.cluster_checks import SILENT_S, check_cluster, check_needs
from psrt.doctor.cut_checks import check_cuts
from psrt.doctor.dump import dump
from psrt.doctor.findings import Finding
from psrt.doctor.host_checks import check_host
from psrt.doctor.host_facts import HostFacts, host_facts
from psrt.doctor.processes import process_reports, pservers_here
from psrt.doctor.reachability import check_addresses, check_reachability

__all__ = ["SILENT_S", "Finding", "HostFacts", "check_addresses", "check_cluster", "check_cuts"]
__all__ += ["check_host", "check_needs", "check_reachability", "dump", "host_facts"]
__all__ += ["process_reports", "pservers_here"]
