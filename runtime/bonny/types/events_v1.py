"""See events_v1.pyi."""
