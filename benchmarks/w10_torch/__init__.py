"""Tables of `psrt.torch` beside torch's own.

The script runs

    loops  loops of torch over one network, whose table is psrt's or torch's own
"""
