"""See storage_v1.pyi."""
