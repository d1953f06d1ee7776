"""See apiextensions_v1.pyi."""
