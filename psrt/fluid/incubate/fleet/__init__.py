"""`fleet` under Fluid's paths, see `psrt.fluid.incubate`."""
