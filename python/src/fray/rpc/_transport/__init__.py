"""What both ends of a connection have in common: frames, parts of large messages, TLS, threads.

What calls mean is left to `_calling` and `_serving`. Start with `wire`.
"""
