"""A connection of this process to a Ray cluster."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from fray.cluster.errors import ClusterError
from fray.cluster.ray.calls import Calls
from fray.cluster.ray.host import host_class, payload_of
from fray.cluster.ray.package import package
from fray.cluster.ray.records import PROTOCOL
from fray.cluster.ray.spec import Spec
from fray.cluster.ray.store import Store, parts_of

REGISTRY = "fray-registry"
_HEAD = {"node:__internal_head__": 0.001}  # which Ray gives the head itself


def import_ray() -> Any:
    """Return the module.

    Raises:
        ImportError: it is not installed; the message names what to install.
    """
    try:
        return import_module("ray")
    except ModuleNotFoundError as err:
        if err.name != "ray":
            raise
        raise ImportError(
            "a Ray cluster needs the package ray, which is not installed; install fray-ml[ray]", name="ray"
        ) from err


class Connection:
    """The registry of a namespace, which is made if there is none."""

    def __init__(self, spec: Spec, namespace: str, timeout: float) -> None:
        self.ray = import_ray()
        self.spec, self.namespace = spec, namespace
        if not self.ray.is_initialized():
            self.ray.init(
                spec.address,
                namespace=namespace,
                log_to_driver=False,
                logging_level="ERROR",
                configure_logging=False,
            )
        self.calls = Calls(self._registry, spec.address, timeout)

    def _registry(self) -> Any:
        try:
            return self.ray.get_actor(REGISTRY, namespace=self.namespace)
        except ValueError:
            pass
        sha256, _ = self.ship_package()
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
        made = self.ray.remote(host_class()).options(**options)
        payload = payload_of(self.namespace, sha256)
        return made.remote(self.namespace, sha256, "fray.cluster.ray.registry:Registry", payload)

    def ship_package(self) -> tuple[str, bytes]:
        """Send fray itself unless the cluster has it."""
        sha256, content = package()
        self.ship(sha256, content)
        return sha256, content

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


