"""What the operator does: one module a kind, or a scheduler. `invoke gen-controller` and `gen-scheduler` add them."""
