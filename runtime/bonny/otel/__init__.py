"""OpenTelemetry: traces of reconciles, their steps and their requests."""
