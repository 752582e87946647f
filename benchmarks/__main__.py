"""Run every benchmark that needs nothing but this project: ``python -m benchmarks``."""

from benchmarks import empirical_ntk, masked_layer, sweep, training

for benchmark in (empirical_ntk, masked_layer, sweep, training):
    benchmark.main()
