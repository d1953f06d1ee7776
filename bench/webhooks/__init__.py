"""Admission webhooks, measured beside controller-runtime."""
