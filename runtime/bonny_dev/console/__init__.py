"""Console: a page about a running operator, which lets a person pause objects or run their handlers.

You need it behind `invoke console` and `invoke run-local`. It runs on the developer's machine: objects are read and
changed with the person's own permissions; the operator adds the content of its memory, if it has the extra `console`.
"""
