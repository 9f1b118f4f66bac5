"""Jobs on a fray cluster, or on this machine with the same code.

    from fray.cluster import Entrypoint, JobRequest, ResourceConfig, current_cluster

    cluster = current_cluster()
    job_id = cluster.launch(
        JobRequest(
            name="train",
            entrypoint=Entrypoint.from_callable(train, args=(config,)),
            resources=ResourceConfig.with_tpu("v5litepod-16", slice_count=2),
        )
    )
    cluster.wait(job_id, raise_on_failure=True)

`current_cluster` is a LocalCluster, unless FRAY_CLUSTER_SPEC names a fray cluster or a Ray cluster, as it
does in that cluster's jobs. Start with Cluster for what it can do, JobRequest for what a job is, and
ClusterError for what may go wrong. Actors register with `Cluster.metadata`; `fray.rpc` is for hosting and
calling them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fray import _own_package as _own_package
from fray.cluster.context import JobContext, job_context
from fray.cluster.current import current_cluster
from fray.cluster.errors import (
    AccessDeniedError,
    ActorNotFoundError,
    AlreadyExistsError,
    ClusterError,
    ClusterUnavailableError,
    FieldError,
    InvalidRequestError,
    JobFailedError,
    NoControllerError,
    NotFoundError,
    PickleError,
    RefusedError,
    UnsupportedError,
    WaitTimeoutError,
)
from fray.cluster.protocols import Cluster, Metadata
from fray.cluster.resources import CpuConfig, DeviceConfig, GpuConfig, ResourceConfig, TpuConfig, parse_size
from fray.cluster.types import (
    ActorChanges,
    ActorEndpoint,
    ActorId,
    AttemptInfo,
    Band,
    Choice,
    ChoiceReason,
    Command,
    Entrypoint,
    EnvironmentConfig,
    HealthCheck,
    JobGroupConfig,
    JobId,
    JobInfo,
    JobRequest,
    JobStatus,
    NameClash,
    Namespace,
    PassedAlternative,
    PythonCall,
    ReservationConfig,
    ReservationId,
    ReservationInfo,
    TaskInfo,
    TaskState,
    Termination,
    TerminationCause,
)

if TYPE_CHECKING:
    from fray.cluster.local import LocalCluster
    from fray.cluster.ray import RayCluster
    from fray.cluster.remote import FrayCluster
    from fray.rpc.local import LocalResolver
    from fray.rpc.resolver import ClusterResolver, FixedResolver, Resolver

__all__ = [
    "AccessDeniedError",
    "ActorChanges",
    "ActorEndpoint",
    "ActorId",
    "ActorNotFoundError",
    "AlreadyExistsError",
    "AttemptInfo",
    "Band",
    "Choice",
    "ChoiceReason",
    "Cluster",
    "ClusterError",
    "ClusterResolver",
    "ClusterUnavailableError",
    "Command",
    "CpuConfig",
    "DeviceConfig",
    "Entrypoint",
    "EnvironmentConfig",
    "FieldError",
    "FixedResolver",
    "FrayCluster",
    "GpuConfig",
    "HealthCheck",
    "InvalidRequestError",
    "JobContext",
    "JobFailedError",
    "JobGroupConfig",
    "JobId",
    "JobInfo",
    "JobRequest",
    "JobStatus",
    "LocalCluster",
    "LocalResolver",
    "Metadata",
    "NameClash",
    "Namespace",
    "NoControllerError",
    "NotFoundError",
    "PassedAlternative",
    "PickleError",
    "PythonCall",
    "RayCluster",
    "RefusedError",
    "ReservationConfig",
    "ReservationId",
    "ReservationInfo",
    "Resolver",
    "ResourceConfig",
    "TaskInfo",
    "TaskState",
    "Termination",
    "TerminationCause",
    "TpuConfig",
    "UnsupportedError",
    "WaitTimeoutError",
    "current_cluster",
    "job_context",
    "parse_size",
]


_RESOLVERS = ("ClusterResolver", "FixedResolver", "LocalResolver", "Resolver")


def __getattr__(name: str) -> Any:
    # gRPC is slow to import, and a LocalCluster needs none; what a LocalCluster needs, other clusters do not.
    if name == "LocalCluster":
        from fray.cluster.local import LocalCluster

        return LocalCluster
    if name == "FrayCluster":
        from fray.cluster.remote import FrayCluster

        return FrayCluster
    if name == "RayCluster":
        from fray.cluster.ray import RayCluster

        return RayCluster
    if name in _RESOLVERS:
        return getattr(import_module("fray.rpc"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
