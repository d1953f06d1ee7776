"""bonny_dev: the tools for developers of an operator; never part of its image.

tasks and scaffold: the `invoke` tasks and the files they write; crd and manifest: the objects of an installation;
sandbox: a real control plane on this machine; testing: helpers for tests.
"""
