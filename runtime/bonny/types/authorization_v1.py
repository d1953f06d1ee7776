"""See authorization_v1.pyi."""
