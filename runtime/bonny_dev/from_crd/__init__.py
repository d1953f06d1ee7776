"""From CRD: writes version classes from a CustomResourceDefinition, and compares two definitions.

Elsewhere: definitions made from classes (`crd`), the files of a repository (`tasks.port_crd`).
"""
