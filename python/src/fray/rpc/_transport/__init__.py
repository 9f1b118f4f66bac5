"""What callers and servers have in common: frames, large messages, TLS, threads, the chain of calls.

What calls mean is left to `_calling` and `_serving`. Start with `wire`.
"""
