"""Why: answers the ten questions that people ask, in the same order, when an operator does not do what they expect.

You need it behind `invoke why`. It reads and changes nothing. `facts` asks the API server, `answers` decides without
input or output, `command` finds the object and prints.
"""
