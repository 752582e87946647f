"""Reports of two checkpoints: shown on *Results*, started by the command line alone."""
