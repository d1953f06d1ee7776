"""See rbac_v1.pyi."""
