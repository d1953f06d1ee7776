"""bonny_dev: what developers of an operator run; never part of its image.

tasks and scaffold: the `invoke` tasks and the files they write; crd and manifest: what is installed in a cluster;
sandbox: a real control plane on this machine; testing: helpers for tests.
"""
