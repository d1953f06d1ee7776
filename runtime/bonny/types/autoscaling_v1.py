"""See autoscaling_v1.pyi."""
