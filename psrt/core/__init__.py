"""core: words every room shares. It imports nothing of psrt outside itself.

types (array aliases) → errors (the catalogue) → tensors (SelectedRows, Ragged) → wire (precision of
what travels) → schedules, ctr_optimizers, optimizers, regularizers, admission, lifecycle and modes
(their specs) → policy_rules (which of these make sense) → table_options → specs (what a pserver
must know) → formula_rules → rates (the rate of a step) → clock → metrics → log →
threads → allocator (freed memory, kept) → attributes (settings filled in one by one) → columns
(text for people) → quantities (sizes and rates as people write them) → whole_file (files that are
complete or absent).
"""
