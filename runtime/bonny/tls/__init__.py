"""TLS: certificates that the operator makes, keeps in a Secret, rotates, and swaps on a server that is running.

You need it for a server that clients in the cluster call. It knows neither who they are nor what they ask: each server
brings the names of its Secret and of its Service. It is loaded only by operators that have such a server.

Elsewhere: the certificates that the operator trusts as a client (`bonny.client.certificates`).
"""
