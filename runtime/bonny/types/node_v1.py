"""See node_v1.pyi."""
