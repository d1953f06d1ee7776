"""See admissionregistration_v1.pyi."""
