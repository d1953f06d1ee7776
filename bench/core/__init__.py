"""Figures of the watch and queue core beside kopf and controller-runtime, on a real API server: `make bench-core`."""
