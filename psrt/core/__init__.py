"""core: words every room shares. It imports nothing of psrt outside itself.

types (array aliases) → errors (the catalogue) → tensors (SelectedRows, Ragged) → wire (precision of
what travels) → attributes (settings filled in one by one) → specs (everything a pserver must know
of a table) → clock → metrics → log → threads → allocator (freed memory, kept) → columns (text for
people) → quantities (sizes and rates as people write them) → whole_file (files that are complete or
absent).
"""
