"""Measurements of the watch and queue core beside its peers, on a real API server: `make bench-core`."""
