"""cli: the `psrt` command, one module per subcommand, imported only when that subcommand runs.

options     flags made from the configuration schema
progress    progress on stderr
results     results on stdout
lazy        groups that import a command when it runs
main        the group and its exit codes
init        `psrt init`, which copies a job from `templates`
service     `psrt service`, and psrt as a service of systemd
pserver     `psrt pserver`
script      a Python file as a trainer
trainer     `psrt trainer`
launch      `psrt launch`
operating   `psrt status`, `doctor`, `metrics` and `scale`
token       `psrt token`
plan        `psrt plan`
plot        `psrt plot`
predict     `psrt predict`
models      `psrt inspect` and `psrt export`
graph       `psrt graph`
checkpoint  `psrt checkpoint`
data        `psrt data`
bench       `psrt bench`
config      `psrt config`
host        model and features of the CPU
version     `psrt version`
"""
