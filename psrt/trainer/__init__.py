"""The trainer: a job's program, its data and a communicator, put together and run.

In reading order:

    report    the JSON summary of a run
    inputs    the job file, its batches and the rows they need
    cuts      the part of a trainer in cuts
    shuffle   records exchanged between trainers
    measuring loss, AUC and metrics; progress lines; tests on held-back batches
    models    models on disk, predictions, ONNX files
    observing a running trainer as seen from outside: its pages
    training  the training step, and connected executors
    validating  tests while training goes on, and what they decide
    sessions  the trainer command
    fitting   training from Python in one call
"""
