"""core: words every room shares. It imports nothing of psrt outside itself.

types (array aliases) → errors (the catalogue) → tensors (SelectedRows, Ragged) → wire (precision of
what travels) → schedules, ctr_optimizers, optimizers, regularizers, admission, lifecycle,
table_options and modes (their specs) → specs (what a pserver must know) → policy_rules and
formula_rules (which of these make sense) → rates (the rate of a step) → clock → metrics → log →
threads → allocator (freed memory, kept) → attributes (settings filled in one by one) → columns
(text for people) → quantities (sizes and rates as people write them).
"""
