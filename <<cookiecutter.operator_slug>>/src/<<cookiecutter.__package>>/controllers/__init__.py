"""What is done about each kind: one module a kind. `invoke gen-controller` adds them."""
