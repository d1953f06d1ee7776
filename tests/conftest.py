"""Fixtures for all tests: those that the runtime offers to operators (`sandbox`, `running_operator`)."""

pytest_plugins = ["bonny.testing.plugin"]
