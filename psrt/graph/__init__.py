"""Programs: how they are written, differentiated and checked; nothing here computes.

In reading order: ops (types and inference) · program (plain data) · gradients (table of rules) ·
backward · verify · initializer · builder · layers · optimizer · model.
"""
