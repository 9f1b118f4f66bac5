"""Where actors are: the protocol that routes ask and directories answer, and the directory of one address.

The directory of a cluster is in `_calling.resolve_cluster`, that of Google Cloud in `gcp`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Hashable
from dataclasses import replace
from time import sleep
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, cast
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from fray.rpc._transport.settings import Settings

_SCHEMES = ("actor", "grpc")
_Route = TypeVar("_Route")


class Endpoint(NamedTuple):
    """One place where an actor is."""

    name: str
    address: str
    """host:port"""
    incarnation: str = ""
    """Of the actor; "" where only its server knows."""
    place: str = ""
    """The job and the index of the task that it is in, as job/index, or its machine. Its next incarnation is
    in the same one. "": nothing is known but the address."""

    @property
    def member(self) -> str:
        """Which of several of its name it is, now and after a restart."""
        return self.place or self.address

    @property
    def url(self) -> str:
        """The endpoint as actor://host:port/name."""
        return f"actor://{self.address}/{self.name}"


class Fate(NamedTuple):
    """What is known of the future of an actor that has no endpoint."""

    death: str = ""
    """Why it is gone for good, "" if it may come, or that is not known."""
    undecided: bool = False
    """Whether that will be known soon: its run is ending."""


class RouteTable:
    """The routes of a directory, so that all handles of an actor share one; `make` makes one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Those of a name stay while handles come and go: there are few, and calls are in order then.
        self._named: dict[Hashable, Any] = {}
        self._others: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()

    def get(self, key: Hashable, stays: bool, make: Callable[[], _Route]) -> _Route:
        """Return the route of a key, which is made if there is none."""
        with self._lock:
            found = self._named.get(key) or self._others.get(key)
            if found is None:
                found = make()
                if stays:
                    self._named[key] = found
                else:
                    self._others[key] = found
            return cast("_Route", found)


class Directory(Protocol):
    """Knows where actors are. All methods may be used from any thread."""

    routes: RouteTable

    @property
    def knows_fates(self) -> bool:
        """Whether it learns that an actor is gone for good."""
        ...

    @property
    def namespace(self) -> str:
        """Whose names it knows; "" if it is one address, or if none is founded yet."""
        ...

    def settings(self, given: Settings, wait: bool = True) -> Settings | None:
        """Return settings of a connection with what they leave open about this process.

        Without `wait` it is None where that is not known yet.

        Raises:
            ClusterError: the cluster or the cloud that knows it did not answer.
        """
        ...

    def endpoints(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name, the oldest first.

        Raises:
            ClusterError: the cluster or the cloud that knows it did not answer.
        """
        ...

    def known(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name that are in memory, without asking the cluster or the cloud."""
        ...

    def fresh(self, name: str) -> list[Endpoint]:
        """Return the endpoints that there are at this moment, as `endpoints` does otherwise."""
        ...

    def wait(self, name: str, timeout: float) -> None:
        """Return when the endpoints of a name may have changed, after `timeout` seconds at the latest."""
        ...

    def missing(self, name: str) -> str:
        """Return why there is no endpoint of a name, as text."""
        ...

    def fate(self, name: str, job_id: str = "") -> Fate:
        """Return whether the actor of a name, which has no endpoint, is gone for good.

        `job_id`: of the job that hosted the one which is meant, of several of the name.
        """
        ...


class FixedDirectory:
    """All actors are at one address."""

    namespace = ""
    knows_fates = False

    def __init__(self, address: str) -> None:
        self.address = address
        self.routes = RouteTable()

    def settings(self, given: Settings, wait: bool = True) -> Settings:  # noqa: ARG002
        """Return settings with what the environment has of this process."""
        return completed(given, "", os.environ.get("FRAY_ACTOR_IDENTITY", ""))

    def endpoints(self, name: str) -> list[Endpoint]:
        """Return the one endpoint."""
        return [Endpoint(name, self.address)]

    known = fresh = endpoints

    def wait(self, name: str, timeout: float) -> None:
        """Wait; nothing changes."""
        del name
        sleep(timeout)

    def fate(self, name: str, job_id: str = "") -> Fate:  # noqa: ARG002
        """Return that nothing is known: there is no record of deaths."""
        return Fate()

    def missing(self, name: str) -> str:
        """Return that an actor is not at the address, as text."""
        return f'no actor "{name}" is at {self.address}'


def completed(given: Settings, namespace: str, identity: str, secret: bytes = b"") -> Settings:
    """Return settings with a namespace, and an identity or a LocalCluster's secret, where they have none."""
    return replace(
        given,
        namespace=given.namespace or namespace or os.environ.get("FRAY_NAMESPACE", ""),
        identity=given.identity or identity,
        secret=given.secret or secret,
    )


def address_of(target: str) -> tuple[str, str]:
    """Return the host:port of a target, and the name that its URL may have.

    Args:
        target: host:port, or actor://host:port/name, or the same with grpc.

    Raises:
        ValueError: it is something else.
    """
    if "://" not in target:
        target = f"actor://{target}"
    parts = urlsplit(target)
    try:
        port = parts.port
    except ValueError:
        port = None
    if parts.scheme not in _SCHEMES or not parts.hostname or not port:
        raise ValueError(f'"{target}" is no address of actors; give host:port, or actor://host:port/name')
    return parts.netloc, parts.path.strip("/")
