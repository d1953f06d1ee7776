"""Release: what to look at before a release: changes that break stored objects or clients, and a page of the kinds."""
