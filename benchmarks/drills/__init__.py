"""Drills: what must not happen, provoked on purpose. Each is one command that prints and saves a verdict.

``python -m benchmarks.drills.stops``, ``.kills``, ``.sweeps``, ``.sessions``, ``.gallery``,
``.fuzzed_specs``, ``.poll``; ``--help`` lists what can be chosen.
"""
