"""See authentication_v1.pyi."""
