"""launch: the processes of a job on this host.

plan       command lines of pservers and trainers
outputs    directories, and the report of the whole job
supervise  decisions when a process ends
ready_files  facts that pservers write for their launcher
processes  processes: start, output, signals
report     table, merged report and failure of a launch
local      a cluster on this host
"""
