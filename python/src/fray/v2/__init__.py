"""The small interface: submit a job, get a handle.

    from fray.v2 import Entrypoint, JobRequest, ResourceConfig, current_client

    job = current_client().submit(
        JobRequest(name="train", entrypoint=Entrypoint.from_callable(train), resources=ResourceConfig(cpu=4))
    )
    job.wait(timeout=3600)

`current_client` is the one that was set, or what FRAY_CLIENT_SPEC names, or a LocalClient.
"""

from fray.cluster import (
    CpuConfig,
    DeviceConfig,
    Entrypoint,
    EnvironmentConfig,
    JobFailedError,
    JobStatus,
    ResourceConfig,
    TpuConfig,
    WaitTimeoutError,
)
from fray.v2.client import Client, FrayClient, LocalClient, current_client, set_current_client
from fray.v2.types import JobHandle, JobRequest

__all__ = [
    "Client",
    "CpuConfig",
    "DeviceConfig",
    "Entrypoint",
    "EnvironmentConfig",
    "FrayClient",
    "JobFailedError",
    "JobHandle",
    "JobRequest",
    "JobStatus",
    "LocalClient",
    "ResourceConfig",
    "TpuConfig",
    "WaitTimeoutError",
    "current_client",
    "set_current_client",
]
