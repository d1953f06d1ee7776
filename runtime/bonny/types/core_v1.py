"""See core_v1.pyi."""
