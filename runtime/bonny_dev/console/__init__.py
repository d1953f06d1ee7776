"""Console: a page that shows what an operator does now, and lets a person pause objects or run their handlers.

You need it behind `invoke console` and `invoke run-local`. It runs on the developer's machine: objects are read and
changed with the person's own permissions; the operator adds what it has in memory, if it has the extra `console`.
"""
