"""Measurements of the whole pipeline beside its peers, on a real API server: `make bench-pipeline`."""
