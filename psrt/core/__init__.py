"""core: words every room shares. It imports nothing of psrt outside itself.

types (array aliases) → errors (the catalogue) → tensors (SelectedRows, Ragged) → specs (what a
pserver must know) → rates (learning-rate schedules) → clock → metrics → log → threads.
"""
