"""Finds actors by the labels of Google Cloud's machines, without a controller.

Listing machines is left to `_calling.gcp_api`.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from time import monotonic

from fray.cluster.errors import ClusterUnavailableError
from fray.rpc._calling.gcp_api import Listing, Machine, Machines, PartialListError, Urls
from fray.rpc._calling.resolve import Endpoint, Fate, RouteTable, completed
from fray.rpc.options import ConnectionSettings, RpcOptions
from fray.rpc.resolver import BaseResolver

_ACTOR, _NAMESPACE = "fray-actor-", "fray-namespace"
_NAME = re.compile(r"[a-z0-9_-]{1,52}\Z")  # a label's key has 63 characters at most
_FRESH = 10.0  # seconds for which a list counts


class LabelDirectory:
    """The labels of a project's machines. They are listed anew at most every few seconds.

    What is known of zones that a list leaves out stays known.
    """

    knows_fates = False

    def __init__(self, machines: Machines, namespace: str) -> None:
        self.namespace = namespace
        self.routes = RouteTable()
        self._machines = machines
        self._lock = threading.Lock()
        self._listed: dict[str, list[Endpoint]] = {}
        self._unlisted: dict[str, str] = {}  # zones, and why
        self._until = 0.0

    def endpoints(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name, in no order that means anything.

        Raises:
            ValueError: no label can be called so.
            PartialListError: it may be in a zone that could not be listed.
            ClusterError: nothing could be listed, and nothing is known of it.
        """
        if not _NAME.match(name):
            raise ValueError(
                f'"{name}" is no label: actors that are found by labels have names of a-z, 0-9, _ and -'
            )
        with self._lock:
            if monotonic() >= self._until:
                try:
                    self._take(self._machines.list())
                except ClusterUnavailableError:
                    if not self._listed.get(name):
                        raise
                self._until = monotonic() + _FRESH
            found = self._listed.get(name, [])
            if not found and self._unlisted:
                raise PartialListError(self._unlisted)
            return found

    def settings(self, given: ConnectionSettings, wait: bool = True) -> ConnectionSettings:  # noqa: ARG002
        """Return settings with what the environment has of this process."""
        return completed(given, self.namespace, os.environ.get("FRAY_ACTOR_IDENTITY", ""))

    def known(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name that are in memory."""
        return self._listed.get(name, [])

    def fresh(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name, of a new list."""
        self._until = 0.0
        return self.endpoints(name)

    def wait(self, name: str, timeout: float) -> None:
        """Wait, and list anew next time: the caller found that the list is of no use."""
        del name
        threading.Event().wait(timeout)
        self._until = min(self._until, monotonic() + 1)

    def missing(self, name: str) -> str:
        """Return why there is no machine with the label, as text."""
        if self._unlisted:
            return str(PartialListError(self._unlisted))
        return f'no machine that runs has the labels {_ACTOR}{name} and {_NAMESPACE} = "{self.namespace}"'

    def fate(self, name: str, job_id: str = "") -> Fate:  # noqa: ARG002
        """Return that nothing is known: a machine of that name may come."""
        return Fate()

    def _take(self, listing: Listing) -> None:
        found: dict[str, list[Endpoint]] = {}
        for machine in listing.machines:
            if machine.labels.get(_NAMESPACE, "default") == self.namespace:
                for endpoint in _endpoints(machine):
                    found.setdefault(endpoint.name, []).append(endpoint)
        for name, endpoints in self._listed.items():
            listed = {each.place for each in found.get(name, [])}
            for each in endpoints:
                if each.place.partition("/")[0] in listing.unlisted and each.place not in listed:
                    found.setdefault(name, []).append(each)
        self._listed, self._unlisted = found, listing.unlisted


def _endpoints(machine: Machine) -> Iterator[Endpoint]:
    for label, port in machine.labels.items():
        if label.startswith(_ACTOR) and port.isdecimal():
            address = f"{machine.address}:{port}"
            yield Endpoint(label.removeprefix(_ACTOR), address, place=machine.name)


class GcpResolver(BaseResolver):
    """Finds actors by the labels of TPU nodes and instances.

    A machine with the labels `fray-actor-NAME = PORT` and `fray-namespace = NAMESPACE` hosts an actor of that
    name, on its first host if it has several.
    """

    def __init__(
        self,
        project: str,
        zones: Sequence[str] = (),
        *,
        namespace: str = "",
        options: RpcOptions | None = None,
        settings: ConnectionSettings | None = None,
        urls: Urls | None = None,
    ) -> None:
        """Make a resolver.

        Args:
            project: Whose machines are listed.
            zones: Where they are; none: all zones.
            namespace: What their label has to be; "": FRAY_NAMESPACE, or else "default".
            options: Of the handles that are made.
            settings: Of connections to actors; None: those of this process.
            urls: Where the APIs are, for tests.
        """
        machines = Machines(project, list(zones), urls or Urls())
        namespace = namespace or os.environ.get("FRAY_NAMESPACE") or "default"
        super().__init__(LabelDirectory(machines, namespace), options, settings)

    def _is_there(self, name: str) -> bool:
        try:
            return super()._is_there(name)
        except PartialListError:
            return False  # it may be, later
