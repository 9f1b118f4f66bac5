"""A connection of this process to the registry of a namespace."""

from __future__ import annotations

from typing import Any

from fray.cluster.errors import ClusterError
from fray.cluster.ray.calls import Calls
from fray.cluster.ray.dial import connect
from fray.cluster.ray.host import host_class
from fray.cluster.ray.naming import REGISTRY
from fray.cluster.ray.package import package
from fray.cluster.ray.records import PROTOCOL
from fray.cluster.ray.spec import Spec
from fray.cluster.ray.store import Store, parts_of

_HEAD = {"node:__internal_head__": 0.001}  # which Ray gives the head itself


class Connection:
    """The registry of a namespace, which is made if there is none."""

    def __init__(self, spec: Spec, namespace: str, timeout: float) -> None:
        self.spec, self.namespace = spec, namespace
        self.ray, self.address = connect(spec, namespace)
        self.calls = Calls(self._registry, self.address, timeout)

    def _registry(self) -> Any:
        if not self.ray.is_initialized():  # or Ray would connect to whatever cluster it finds
            raise ConnectionError("this process has shut Ray down")
        try:
            return self.ray.get_actor(REGISTRY, namespace=self.namespace)
        except ValueError:
            pass
        sha256, content = package()
        self.ship(sha256, content)
        options = {
            "name": REGISTRY,
            "namespace": self.namespace,
            "lifetime": "detached",
            "get_if_exists": True,
            "max_restarts": -1,
            "max_concurrency": 10_000,
            "num_cpus": 0,
            "resources": _HEAD,
        }
        hosting = host_class(self.namespace, sha256, "fray.cluster.ray.registry:Registry")
        return self.ray.remote(hosting).options(**options).remote()

    def ship(self, sha256: str, content: bytes) -> None:
        """Send a blob unless the cluster has it."""
        store = Store(self.namespace)
        if not store.has_blob(sha256):
            store.put_blob(sha256, parts_of(content))

    def check(self) -> None:
        """Raise ClusterError if the registry is of a version of fray that this one does not understand."""
        found = self.calls.call("hello")
        if found != PROTOCOL:
            raise ClusterError(
                f"the namespace {self.namespace} is served by a fray with protocol {found}, and this one has "
                f"{PROTOCOL}; use the same version of fray, or another namespace"
            )
