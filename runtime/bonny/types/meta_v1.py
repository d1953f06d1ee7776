"""See meta_v1.pyi."""
