"""Drills provoke faults; each prints and saves which claims hold.

``python -m benchmarks.drills.sessions``, ``.attacker``, ``.kills``, ``.full_disk``, ``.poll``, ``.gallery``,
``.fuzzed_specs``; ``--help`` lists the options.
"""
