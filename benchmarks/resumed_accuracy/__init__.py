"""Test AUC of a training that was stopped and resumed, beside one that was not.

In reading order:

    __main__  the command: `python -m benchmarks.resumed_accuracy`
    attempts  the trainings: whole, or stopped at a cut
"""
