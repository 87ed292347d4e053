"""The fleet rooms of Fluid, see `psrt.fluid.incubate`."""
