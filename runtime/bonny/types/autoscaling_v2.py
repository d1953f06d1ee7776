"""See autoscaling_v2.pyi."""
