"""Actors: objects that other processes call by name, also from other languages.

    from fray.cluster import current_cluster
    from fray.rpc import ActorServer, ClusterResolver

    server = ActorServer(current_cluster())             # in one process
    server.register("counter", Counter())
    server.serve()

    resolver = ClusterResolver(current_cluster())       # in another
    counter = resolver.wait_for_actor("counter")
    n = counter.increment(2)
    future = counter.increment.remote(2)

A call runs at most once: one that may have run when its server was lost ends with MaybeExecutedError, unless
its options or the method itself allow it to run again. docs/guides/actors.md has the rules.

Start with ActorServer, Resolver and ActorHandle, and with `fray.rpc.errors` for what may go wrong.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fray import _own_package as _own_package

if TYPE_CHECKING:
    from fray.rpc import errors as errors
    from fray.rpc.actor_pool import ActorPool as ActorPool
    from fray.rpc.client import RpcClient as RpcClient
    from fray.rpc.context import ActorContext as ActorContext
    from fray.rpc.errors import ActorError as ActorError
    from fray.rpc.future import ActorFuture as ActorFuture
    from fray.rpc.gcp import GcpResolver as GcpResolver
    from fray.rpc.handle import ActorHandle as ActorHandle
    from fray.rpc.handle import ActorMethod as ActorMethod
    from fray.rpc.local import LocalResolver as LocalResolver
    from fray.rpc.options import ConnectionSettings as ConnectionSettings
    from fray.rpc.options import RpcOptions as RpcOptions
    from fray.rpc.pool import LeastLoaded as LeastLoaded
    from fray.rpc.pool import RoundRobin as RoundRobin
    from fray.rpc.pool import broadcast as broadcast
    from fray.rpc.resolver import ClusterResolver as ClusterResolver
    from fray.rpc.resolver import FixedResolver as FixedResolver
    from fray.rpc.resolver import Resolver as Resolver
    from fray.rpc.server import ActorServer as ActorServer
    from fray.rpc.server import method as method
    from fray.rpc.stream import ActorStream as ActorStream
    from fray.rpc.waiting import as_completed as as_completed
    from fray.rpc.waiting import wait as wait

# Programs that only serve, or only call, import half of it.
_HOMES = {
    "ActorContext": "context",
    "ActorError": "errors",
    "ActorFuture": "future",
    "ActorHandle": "handle",
    "ActorMethod": "handle",
    "ActorPool": "actor_pool",
    "ActorServer": "server",
    "ActorStream": "stream",
    "ClusterResolver": "resolver",
    "ConnectionSettings": "options",
    "FixedResolver": "resolver",
    "GcpResolver": "gcp",
    "LeastLoaded": "pool",
    "LocalResolver": "local",
    "Resolver": "resolver",
    "RoundRobin": "pool",
    "RpcClient": "client",
    "RpcOptions": "options",
    "as_completed": "waiting",
    "broadcast": "pool",
    "method": "server",
    "wait": "waiting",
}

__all__ = [*_HOMES, "errors"]


def __getattr__(name: str) -> Any:
    if name == "errors":
        return import_module("fray.rpc.errors")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"fray.rpc.{_HOMES[name]}"), name)
    return value
