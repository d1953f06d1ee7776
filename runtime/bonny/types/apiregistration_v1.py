"""See apiregistration_v1.pyi."""
