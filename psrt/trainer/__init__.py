"""The trainer: a job's program, its data and a communicator, put together and run.

Reading order, which is also import order: program_file (the user's Python) · job (program, slots) ·
outputs (what is fetched) · metrics (AUC, loss) · prefetch (which rows a batch needs) · ahead and
batches (prepared in the background) · progress · loop (the step) · evaluate · model_dir, export and
saved_model (models on disk) · completion (who leaves when) · cluster (plan and clients) · signals ·
report · workshop (scope and executor) · session (a process that trains) · saved_session (one that
tests a saved model).
"""
