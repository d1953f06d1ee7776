"""Fixtures for all tests: `sandbox`, a real API server, and `running_operator`, this operator running in it."""

pytest_plugins = ["bonny_dev.testing.plugin"]
