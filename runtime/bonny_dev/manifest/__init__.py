"""Manifest: everything that a cluster needs to run the operator, made from the declarations in its code.

Elsewhere: which permissions (`rbac`), how the operator runs (`deployment`), what is in the file and in which order
(`bundle`), what `invoke manifest` does with it (`command`).
"""
