"""Measurements of replicas that share the work, and of many objects in one process: `make bench-scale`."""
