"""See resource_v1.pyi."""
