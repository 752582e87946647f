"""Speed and memory against peers, measured side by side: ``python -m benchmarks`` writes benchmarks/results/*.json."""
