"""How fast two cores are, for estimates of wall time: orders of magnitude, measured once."""

# Products of the sizes that occur here run at about this rate, compiling one width takes about this long.
FLOPS_PER_SECOND = 6e10
COMPILE_SECONDS = 1.2
STEP_OVERHEAD_SECONDS = 2e-5
TYPICAL_STEPS = 1000
BYTES = 4
