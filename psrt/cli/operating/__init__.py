"""operating: commands for those who look after running jobs.

status   `psrt status`
watching the reports of `psrt status --watch`
doctor   `psrt doctor`
metrics  `psrt metrics`
scale    `psrt scale`
"""

__all__: list[str] = []
