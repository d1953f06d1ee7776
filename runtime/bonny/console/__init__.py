"""Console: queues, slots, streams and the last runs of objects as JSON, for people who watch an operator.

You need it behind `invoke console` and the link of `invoke run-local`; the page belongs to the developers' tools. It is
off unless `BONNY_CONSOLE_PORT` is set, answers on the loopback address only, changes nothing, and shows of an object no
more than its name. Without this extra no run is remembered.
"""
