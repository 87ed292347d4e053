"""launch: the processes of a job on this host.

plan       command lines of pservers and trainers
supervise  decisions when a process ends
processes  processes: start, output, signals
report     table, merged report and failure of a launch
local      a cluster on this host
"""
