"""The trainer: a job's program, its data and a communicator, put together and run.

Reading order, which is also import order: program_file (the user's Python) · table_changes (what
the job file says of tables) · job (program, slots) · outputs (what is fetched) · metrics (AUC,
loss) · counts (shows and clicks of ids) · prefetch (which rows a batch needs) · report · state (how
far the data is trained on) · ahead and batches (prepared in the background) · progress · loop (the
step) · evaluate · model_dir, export and saved_model (models on disk) · inference (what predicts) ·
completion (who leaves when) · shrinking (tables) · cluster (plan and clients) · signals · own
(training in this process) · workshop (scope and executor) · profiling · local (training without
pservers) · session (a process that trains) · tally, inbox and shuffle (records between trainers) ·
lifetime, running and connected (an executor whose parameters are on pservers) · saved_session (one
that tests a saved model) · prediction_text and predict (from data files to predictions) ·
onnx_nodes (op type → ONNX) and onnx_export.
"""
