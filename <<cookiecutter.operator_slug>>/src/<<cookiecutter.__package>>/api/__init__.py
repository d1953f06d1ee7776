"""Typed APIs: one package per version, one module per kind; `invoke gen-controller` adds them."""
