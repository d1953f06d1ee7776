"""Why: answers the ten questions that people ask, in the same order, when an operator does not act as they expect.

You need it behind `invoke why`. It changes nothing. `facts` reads from the API server, `answers` decides without
input or output, `command` finds the object and prints.
"""
