"""Run every benchmark that needs nothing but this project: ``python -m benchmarks``."""

from benchmarks import empirical_ntk, sweep, training

for benchmark in (empirical_ntk, sweep, training):
    benchmark.main()
