"""The kinds that users create: one package a version, one module a kind. `invoke gen-controller` adds them."""
