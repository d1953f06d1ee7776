"""Code that the benches with peers share: contestants, traffic, measuring, rounds, reports."""
