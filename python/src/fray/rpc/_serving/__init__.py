"""The side of servers: connections, the order of calls, and their methods.

What programs use of it is `fray.rpc.server`. Start with `core`, then `call`.
"""
