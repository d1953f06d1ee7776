"""See networking_v1.pyi."""
