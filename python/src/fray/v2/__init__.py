"""The small interface: submit a job, get a handle; create an actor, call it.

    from fray.v2 import Entrypoint, JobRequest, ResourceConfig, current_client

    job = current_client().submit(
        JobRequest(name="train", entrypoint=Entrypoint.from_callable(train), resources=ResourceConfig(cpu=4))
    )
    job.wait(timeout=3600)

    counter = current_client().create_actor(Counter, 10, name="counter")
    counter.increment(2)
    counter.increment.remote(3).result()

`current_client` is the one that was set, or what FRAY_CLIENT_SPEC names, or a LocalClient.
"""

from typing import TYPE_CHECKING, Any

from fray import _own_package as _own_package
from fray.cluster import (
    CpuConfig,
    DeviceConfig,
    Entrypoint,
    EnvironmentConfig,
    GpuConfig,
    JobFailedError,
    JobStatus,
    ResourceConfig,
    TpuConfig,
    WaitTimeoutError,
)
from fray.v2.client import (
    Client,
    FrayClient,
    LocalClient,
    current_client,
    get_actor,
    kill,
    set_current_client,
)
from fray.v2.options import ActorOptions, Lifetime
from fray.v2.types import JobHandle, JobRequest

if TYPE_CHECKING:
    from fray.rpc.actor_pool import ActorPool
    from fray.rpc.future import ActorFuture
    from fray.rpc.handle import ActorHandle
    from fray.rpc.waiting import as_completed, wait
    from fray.v2.actor import ActorCreationError, ActorGroup, ActorStatus
    from fray.v2.iris_backend import FrayIrisClient
    from fray.v2.ray_backend import RayClient
    from fray.v2.template import Actor

_OF_ACTORS = ("ActorCreationError", "ActorGroup", "ActorStatus")
_OF_CALLS = ("ActorFuture", "ActorHandle", "ActorPool", "as_completed", "wait")

__all__ = [
    "Actor",
    "ActorCreationError",
    "ActorFuture",
    "ActorGroup",
    "ActorHandle",
    "ActorOptions",
    "ActorPool",
    "ActorStatus",
    "Client",
    "CpuConfig",
    "DeviceConfig",
    "Entrypoint",
    "EnvironmentConfig",
    "FrayClient",
    "FrayIrisClient",
    "GpuConfig",
    "JobFailedError",
    "JobHandle",
    "JobRequest",
    "JobStatus",
    "Lifetime",
    "LocalClient",
    "RayClient",
    "ResourceConfig",
    "TpuConfig",
    "WaitTimeoutError",
    "as_completed",
    "current_client",
    "get_actor",
    "kill",
    "set_current_client",
    "wait",
]


def __getattr__(name: str) -> Any:
    # Programs that only submit jobs do not import the client of actors.
    if name in _OF_ACTORS:
        from fray.v2 import actor

        return getattr(actor, name)
    if name in _OF_CALLS:
        from fray import rpc

        return getattr(rpc, name)
    if name == "RayClient":
        from fray.v2.ray_backend import RayClient

        return RayClient
    if name == "FrayIrisClient":
        from fray.v2.iris_backend import FrayIrisClient

        return FrayIrisClient
    if name == "Actor":
        from fray.v2.template import Actor

        return Actor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
