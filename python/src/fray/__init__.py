"""Launch ML jobs on a fray cluster, or on this machine with the same code.

Start with `fray.cluster` (jobs, groups and reservations) or with the smaller
`fray.v2` (submit a job, get a handle). What the package does not do is decide
anything: placement, retries and sharing are the cluster's.

The modules actor, client, current_client, local_backend and types, and the names that this
package has of them, are those of marin-fray, for programs that were written for it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fray import _distribution

if TYPE_CHECKING:
    from fray.actor import ActorContext as ActorContext
    from fray.actor import ActorFuture as ActorFuture
    from fray.actor import ActorGroup as ActorGroup
    from fray.actor import ActorHandle as ActorHandle
    from fray.actor import ActorMethod as ActorMethod
    from fray.actor import current_actor as current_actor
    from fray.client import Client as Client
    from fray.client import JobAlreadyExists as JobAlreadyExists
    from fray.client import JobFailed as JobFailed
    from fray.client import JobHandle as JobHandle
    from fray.client import wait_all as wait_all
    from fray.current_client import current_client as current_client
    from fray.current_client import set_current_client as set_current_client
    from fray.local_backend import LocalActorHandle as LocalActorHandle
    from fray.local_backend import LocalActorMethod as LocalActorMethod
    from fray.local_backend import LocalClient as LocalClient
    from fray.local_backend import LocalJobHandle as LocalJobHandle
    from fray.types import ActorConfig as ActorConfig
    from fray.types import BinaryEntrypoint as BinaryEntrypoint
    from fray.types import CallableEntrypoint as CallableEntrypoint
    from fray.types import CpuConfig as CpuConfig
    from fray.types import DeviceConfig as DeviceConfig
    from fray.types import DeviceKind as DeviceKind
    from fray.types import Entrypoint as Entrypoint
    from fray.types import EnvironmentConfig as EnvironmentConfig
    from fray.types import GpuConfig as GpuConfig
    from fray.types import GpuType as GpuType
    from fray.types import JobRequest as JobRequest
    from fray.types import JobStatus as JobStatus
    from fray.types import ResourceConfig as ResourceConfig
    from fray.types import TpuConfig as TpuConfig
    from fray.types import TpuTopologyInfo as TpuTopologyInfo
    from fray.types import TpuType as TpuType
    from fray.types import create_environment as create_environment
    from fray.types import get_tpu_topology as get_tpu_topology

__fray_ml__ = True

_MARIN = {
    "actor": "ActorContext ActorFuture ActorGroup ActorHandle ActorMethod current_actor",
    "client": "Client JobAlreadyExists JobFailed JobHandle wait_all",
    "current_client": "current_client set_current_client",
    "local_backend": "LocalActorHandle LocalActorMethod LocalClient LocalJobHandle",
    "types": "ActorConfig BinaryEntrypoint CallableEntrypoint CpuConfig DeviceConfig DeviceKind Entrypoint"
    " EnvironmentConfig GpuConfig GpuType JobRequest JobStatus ResourceConfig TpuConfig TpuTopologyInfo"
    " TpuType create_environment get_tpu_topology",
}

_distribution.warn_of_others()


def __getattr__(name: str) -> Any:
    for module, names in _MARIN.items():
        if name in names.split():
            return getattr(import_module(f"fray.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
