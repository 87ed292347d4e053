"""Programs: how they are written, differentiated and checked; nothing here computes.

In reading order: ops (types and inference) · program (plain data) · gradients (table of rules) ·
backward · verify · prune · derived · initializer · regularizer · clip · tables ·
param · arguments · builder · layers · adjustments (of gradients) · optimizer · model ·
passes (the same with less) · render (programs for the eye).
"""
