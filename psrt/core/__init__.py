"""core: words every room shares. It imports nothing of psrt outside itself.

types (array aliases) → errors (the catalogue) → tensors (SelectedRows, Ragged) → schedules,
optimizers, regularizers and modes (their specs) → specs (what a pserver must know) → rates (the
rate of a step) → clock → metrics → log → threads → attributes (settings filled in one by one) →
columns (text for people).
"""
