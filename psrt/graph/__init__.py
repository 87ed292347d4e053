"""Programs: building, differentiating and checking them; nothing here computes.

In reading order: names (unknown ones, and the user's line) · ops (types and inference) · program
(plain data) · gradients (table of rules) · backward · verify · prune · derived · initializer ·
regularizer · clip · tables · param · arguments · builder · layers · clip_and_decay (of gradients) ·
declaration (`minimize`) · optimizer · model · passes (fewer and cheaper ops) · render (text and
drawings).
"""
