"""The peers: public programs that compute the same, each in an environment of its own (process.py)."""
