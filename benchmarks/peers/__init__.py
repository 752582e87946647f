"""Peers: public programs that compute the same, in separate environments."""
