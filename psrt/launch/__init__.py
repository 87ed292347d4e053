"""launch: the processes of a job, on this host or by an engine, and their supervision.

plan       command lines of pservers and trainers
replacements  commands in the place of killed processes
groups     the processes of a job without pservers
scripts    the processes of a script
own_flags  the flags of a launch, for another one
plan_text  a plan as text, for people
brought    files that go to hosts
hosts      hosts, slots, and the host of each process
outputs    directories, logs, and the report of the whole job
run_directory  the directory of one launch
supervise  decisions when a process ends
ready_files  facts that pservers write for their launcher
children   protocols of a child and of an engine
processes  processes of this host: start, output, signals
reported_child  a process that something else has started
report     table, merged report and failure of a launch
cluster    the loop of a launch
runners    processes on other hosts that start those of a launch
kubernetes  a release of the Helm chart
engines    the ways to start processes
launching  a launch from settings to report
"""
