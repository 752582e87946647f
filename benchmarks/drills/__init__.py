"""Drills provoke faults and save which claims hold.

``python -m benchmarks.drills.kills --help``, and so on.
"""
