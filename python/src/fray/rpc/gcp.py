"""Finding actors by the labels of Google Cloud's machines, where no controller is."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Sequence
from time import monotonic

from fray.rpc._gcp_api import Machines, Urls
from fray.rpc._resolve import Endpoint, RouteTable
from fray.rpc.options import ConnectionSettings, RpcOptions
from fray.rpc.resolver import BaseResolver

_ACTOR, _NAMESPACE = "fray-actor-", "fray-namespace"
_NAME = re.compile(r"[a-z0-9_-]{1,52}\Z")  # a label's key has 63 characters at most
_FRESH = 10.0  # seconds for which a list counts


class LabelDirectory:
    """What the labels of a project's machines say. They are listed anew at most every few seconds."""

    def __init__(self, machines: Machines, namespace: str) -> None:
        self.namespace = namespace
        self.routes = RouteTable()
        self._machines = machines
        self._lock = threading.Lock()
        self._listed: dict[str, list[Endpoint]] = {}
        self._until = 0.0

    def endpoints(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name, in no order that means anything."""
        if not _NAME.match(name):
            raise ValueError(
                f'"{name}" is no label: actors that are found by labels have names of a-z, 0-9, _ and -'
            )
        with self._lock:
            if monotonic() >= self._until:
                self._listed = self._list()
                self._until = monotonic() + _FRESH
            return self._listed.get(name, [])

    def known(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name that are in memory."""
        return self._listed.get(name, [])

    def fresh(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name, of a new list."""
        self._until = 0.0
        return self.endpoints(name)

    def wait(self, name: str, timeout: float) -> None:
        """Wait, and have the next look be a new one: who waits found that the list is of no use."""
        del name
        threading.Event().wait(timeout)
        self._until = min(self._until, monotonic() + 1)

    def missing(self, name: str) -> str:
        """Return the words for there being no machine with the label."""
        return f'no machine that runs has the labels {_ACTOR}{name} and {_NAMESPACE} = "{self.namespace}"'

    def _list(self) -> dict[str, list[Endpoint]]:
        found: dict[str, list[Endpoint]] = {}
        for machine in self._machines:
            if machine.labels.get(_NAMESPACE, "default") != self.namespace:
                continue
            for label, port in machine.labels.items():
                if label.startswith(_ACTOR) and port.isdecimal():
                    name = label.removeprefix(_ACTOR)
                    owner = (machine.address, 0)
                    endpoint = Endpoint(name, f"{machine.address}:{port}", owner=owner)
                    found.setdefault(name, []).append(endpoint)
        return found


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
            project: Whose machines are looked at.
            zones: Where they are; none: all zones.
            namespace: What their label has to be; "": FRAY_NAMESPACE, or else "default".
            options: Of the handles that are made.
            settings: Of connections to actors; None: those of this process.
            urls: Where the APIs are, for tests.
        """
        machines = Machines(project, list(zones), urls or Urls())
        namespace = namespace or os.environ.get("FRAY_NAMESPACE") or "default"
        super().__init__(LabelDirectory(machines, namespace), options, settings)
