"""See scheduling_v1.pyi."""
