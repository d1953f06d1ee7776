"""Metrics with authorization: /metrics over TLS, for clients that may read it, with `Deploy(secure_metrics=True)`."""
