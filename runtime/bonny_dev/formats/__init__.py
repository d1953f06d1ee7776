"""Formats: the objects of a manifest as a Helm chart, as a kustomize base, or as a bundle for OLM.

All of them are made from the objects that `manifest.bundle.documents` returns, never from YAML text.
Elsewhere: the objects themselves (`manifest`), what `invoke manifest --format` does (`command`).
"""
