"""status: a running job as seen from outside, from the facts that its pservers report.

facts      what one pserver reports, as values
gathering  facts of all pservers of a job, asked side by side
whole_plan all pservers of a job, found from some of them
waits      who waits for whom, and which trainer or pserver holds a job up
summaries  cuts and errors of a whole job
rates      rates of a pserver between two looks
report     the facts as lines of text
page       the job as a live page for browsers
"""

from psrt.status.facts import ClusterFacts, PserverFacts, Unreachable
from psrt.status.gathering import Gatherer, PlanGatherer, others_of_plan
from psrt.status.report import StatusReport
from psrt.status.waits import Wait, waits
from psrt.status.whole_plan import gathering

__all__ = ["ClusterFacts", "Gatherer", "PlanGatherer", "PserverFacts", "StatusReport"]
__all__ += ["Unreachable", "Wait", "gathering", "others_of_plan", "waits"]
