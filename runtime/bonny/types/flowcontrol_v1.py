"""See flowcontrol_v1.pyi."""
