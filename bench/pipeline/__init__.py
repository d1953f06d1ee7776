"""Figures of the whole pipeline beside kopf and controller-runtime, on a real API server: `make bench-pipeline`."""
