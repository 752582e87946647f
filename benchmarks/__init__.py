"""Speed and memory against peers: ``python -m benchmarks`` writes benchmarks/results/*.json."""
