"""The side of callers: where an actor is, the connection to it, and a call until it has ended.

What programs use of it is in `fray.rpc`. Start with `ongoing`, then `route`.
"""
