"""The fault lab: real pservers and trainers, faults drawn from a seed, and a ledger of pushes.

The simulator (`tests.sim`) tries more histories on one thread; here are the processes, signals,
sockets and disks of an operating system. In reading order:

    ledger_job  a job whose parameters count pushes, and the trainer's process that runs it
    doors       addresses of proxies that trainers use in place of the real ones
    proxy       a proxy that cuts, swallows and holds back bytes
    disks       a small disk that can be filled and made read-only
    clocks      wall clocks of processes, which the lab moves
    drawing     a round as data, drawn from its seed
    children    processes of a round, forked from one that has loaded everything
    books       what trainers reported, and whether tables and cuts hold it
    reference   a run without faults, in this process
    limits      time limits, and the error of a broken promise
    pservers    the pservers of an attempt, behind proxies
    cluster     one attempt of a round: processes behind proxies, and faults that strike them
    rounds      attempts until the job completes, and what must hold then
    report      lines of progress, failing rounds, totals
    rounds_of_seeds  the round of a seed, and what is printed of it
    __main__    `bin/faults`
"""
