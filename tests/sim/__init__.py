"""Simulated clusters: the real code of trainers and pservers on one thread, by a seeded scheduler.

Services, clients, communicators and tables are the ones that users run. Their threads become
fibers, their clock is virtual, their frames travel over simulated links. One seed gives one
history, byte for byte. In reading order:

    world       virtual time, fibers and processes, and the seeded choice of what runs next
    primitives  locks, conditions, events, queues and futures for fibers
    modules     substitutes of the modules `threading` and `time`
    patching    the primitives in place of `threading` and `time` in the modules of psrt
    network     links that delay, drop, double, cut and fall silent, and a carrier over them
    disk        a disk that forgets or tears what was not synced
    slow_disk   that disk on the clock of a world
    ledger      a model whose parameters count pushes, and what they must hold in the end
    passing_rows  rows that come and go on a pserver
    scenario    a cluster, its faults and its seed, as data
    cuts        checks of complete cuts
    promises    checks of a history in its end
    training    one trainer process
    cluster     the processes of a history: starts, faults, restarts
    history     one history of a scenario: run and verdict
    mistakes    functions of psrt with a mistake
    mutations   planted bugs that histories must find
    shrinking   the least faults with which a seed still fails
    dealt_steps  steps as data of trainers, and what positions leave
    dealt_training  trainers that train lists of steps, which are dealt again
    resizing    histories in which the number of trainers changes
    attempt     jobs that are started several times, as data
    whole_cuts  contents of cuts of any number of processes
    attempts    histories in which a job is resumed from its cuts
    small       histories made small: few steps, few faults, close together
    kinds       kinds of histories, and their shares of many
    report      what a broken history prints, and totals
    __main__    `python -m tests.sim`: many histories, one history, or the planted bugs
"""
