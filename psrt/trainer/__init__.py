"""The trainer: a job's program, its data and a communicator, put together and run.

Reading order: program_file (the user's Python) · job (program + slots) · metrics (AUC, loss) ·
prefetch (which rows a batch needs) · ahead (batches prepared in the background) · loop (the step) ·
evaluate · export (model directories) · session (one trainer process).
"""
