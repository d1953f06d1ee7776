"""See discovery_v1.pyi."""
