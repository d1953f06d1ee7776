"""See apps_v1.pyi."""
