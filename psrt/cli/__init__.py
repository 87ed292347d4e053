"""The `psrt` command: one module per subcommand, imported only when that subcommand runs.

Reading order: options (flags from the schema) · progress · results (text that was asked for) ·
main (the group, exit codes) · init (copies a job from templates) · pserver · script (a Python file
as a trainer) · trainer · launch · plan_use · plan_size · plan · predict · export · graph ·
data_options · data_check · data_stat · data_public · data · bench · config · host (what this CPU
can do) · version.
"""
