"""What the benches beside kopf and controller-runtime share: contestants, traffic, measuring, rounds, reports."""
