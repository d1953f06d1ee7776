"""See policy_v1.pyi."""
