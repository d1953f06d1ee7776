"""Inside: the memory of a running operator, from its console (`bonny.console`), on this machine or in a cluster.

You need it behind `invoke why`, `invoke console` and `invoke top`. `reading` finds the console and reads it, `forward`
reaches it through the API server.
"""
