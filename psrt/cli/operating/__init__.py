"""operating: commands for those who look after running jobs.

status   `psrt status`
doctor   `psrt doctor`
metrics  `psrt metrics`
scale    `psrt scale`
"""

__all__: list[str] = []
