"""Run: one run of an operator's process, from its settings and its lease to its probes, metrics and orderly stop."""
