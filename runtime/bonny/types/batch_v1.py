"""See batch_v1.pyi."""
