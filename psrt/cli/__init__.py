"""The `psrt` command: one module per subcommand, imported only when that subcommand runs.

Reading order: options (flags from the schema) · progress · main (the group, exit codes) · pserver ·
trainer · launch · predict · export · graph · data · config · version.
"""
