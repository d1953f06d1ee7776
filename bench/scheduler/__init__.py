"""Measurements of a scheduler beside kube-scheduler, on a real API server: `make bench-scheduler`."""
