"""See certificates_v1.pyi."""
