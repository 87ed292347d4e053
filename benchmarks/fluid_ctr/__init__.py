"""A CTR-DNN as PaddlePaddle's model zoo has it, trained through Fluid's API and by psrt's own.

In reading order:

    settings  what all sides have in common
    clicks    rows of Criteo as files for each side
    cpu_time  CPU time of a trainer
    network   the network in Fluid's words
    worker    one Fluid trainer, a script that `psrt launch` starts
    sides     trainings of the sides as processes
    __main__  trainings of every side in every mode, and their figures
"""
