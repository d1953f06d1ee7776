"""See coordination_v1.pyi."""
