"""Where the actors of a cluster are, as its registry says, kept up to date by watching that."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from functools import cache
from typing import TYPE_CHECKING

from fray.cluster.errors import ActorNotFoundError, ClusterError
from fray.rpc import _fork
from fray.rpc._resolve import Endpoint, RouteTable

if TYPE_CHECKING:
    from fray.cluster.protocols import Cluster, Metadata
    from fray.cluster.types import ActorChanges, ActorEndpoint

_PAUSE = 0.5  # seconds before a watch that broke is begun again
_LAG = 1.0  # seconds by which a watch may know later than a lookup
_log = logging.getLogger("fray.rpc")


class ClusterDirectory:
    """What is registered in a namespace. It is read from memory once the watch has told all there is."""

    def __init__(self, metadata: Metadata, namespace: str) -> None:
        self.namespace = namespace
        self.routes = RouteTable()
        self._metadata = metadata
        self.forget_parent()
        _fork.begins_anew(self)

    def forget_parent(self) -> None:
        """Begin anew, without a watch."""
        self._changed = threading.Condition()
        self._watched = False
        self._live = False  # all that there is has been told
        self._known: dict[str, dict[str, Endpoint]] = {}  # by name, then by incarnation
        self._names: dict[str, str] = {}  # by incarnation
        self._versions: dict[str, int] = {}  # counts changes of a name
        self._seen: dict[str, int] = {}  # the version that was read last

    def endpoints(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name, the oldest first."""
        # What is not there may have come a moment ago.
        return self.known(name) or self._asked(name)

    def known(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name that are in memory."""
        self._watch()
        with self._changed:
            self._seen[name] = self._versions.get(name, 0)
            return list(self._known.get(name, {}).values())

    def fresh(self, name: str) -> list[Endpoint]:
        """Return the endpoints that the cluster has at this moment, and know them from then on."""
        asked = self._asked(name)
        until = time.monotonic() + _LAG
        while self._live and self.known(name) != asked and time.monotonic() < until:
            self.wait(name, _LAG / 10)
        return asked

    def _asked(self, name: str) -> list[Endpoint]:
        return [_endpoint(each) for each in self._metadata.lookup_all(name)]

    def wait(self, name: str, timeout: float) -> None:
        """Return when the endpoints of a name may have changed since they were read."""
        with self._changed:
            seen = self._seen.get(name, 0)
            self._changed.wait_for(lambda: self._versions.get(name, 0) != seen, timeout)

    def missing(self, name: str) -> str:
        """Return the words for there being no endpoint of a name, with names that are near."""
        try:
            self._metadata.lookup(name)
        except ActorNotFoundError as err:
            return str(err)
        except ClusterError:
            pass
        return f'no actor "{name}" is registered in namespace {self.namespace}'

    def _watch(self) -> None:
        with self._changed:
            if self._watched:
                return
            self._watched = True
        name = f"fray-watch-{self.namespace}"
        threading.Thread(
            target=_follow, args=[weakref.ref(self), self._metadata], name=name, daemon=True
        ).start()

    def take(self, changes: ActorChanges) -> None:
        """Take note of what changed."""
        with self._changed:
            touched = set()
            if changes.reset:
                touched |= set(self._known)
                self._known, self._names = {}, {}
            for actor_id in changes.removed:
                name = self._names.pop(actor_id, "")
                self._known.get(name, {}).pop(actor_id, None)
                touched.add(name)
            for each in changes.added:
                self._known.setdefault(each.name, {})[each.actor_id] = _endpoint(each)
                self._names[each.actor_id] = each.name
                touched.add(each.name)
            for name in touched:
                self._versions[name] = self._versions.get(name, 0) + 1
                if not self._known.get(name):
                    self._known.pop(name, None)
            self._live = True
            self._changed.notify_all()

    def blind(self) -> None:
        """Forget what is known, as changes may be missed."""
        with self._changed:
            self._known, self._names, self._live = {}, {}, False


def _follow(directory: weakref.ref[ClusterDirectory], metadata: Metadata) -> None:
    """Watch for as long as the directory is in use."""
    while True:
        try:
            for changes in metadata.watch():
                found = directory()
                if found is None:
                    return
                found.take(changes)
                del found
        except Exception as err:
            _log.debug("watching for actors is begun again: %s", err)
        found = directory()
        if found is None:
            return
        found.blind()
        del found
        time.sleep(_PAUSE)


def _endpoint(each: ActorEndpoint) -> Endpoint:
    place = f"{each.job_id}/{each.task}" if each.job_id else ""
    return Endpoint(each.name, each.address, each.actor_id, place)


def directory_of(cluster: Cluster, namespace: str | None) -> ClusterDirectory:
    """Return the directory of a namespace of a cluster, always the same for the same one."""
    with _lock():
        known = _directories().setdefault(cluster, {})
        wanted = namespace or cluster.namespace
        found = known.get(wanted)
        if found is None:
            found = known[wanted] = ClusterDirectory(_metadata(cluster, wanted), wanted)
        return found


def directory_that_knows(name: str, namespace: str, address: str) -> ClusterDirectory | None:
    """Return the directory in use in this process that has an actor at an address."""
    with _lock():
        used = [each for of_cluster in _directories().values() for each in of_cluster.values()]
    for directory in used:
        if directory.namespace == namespace and any(e.address == address for e in directory.known(name)):
            return directory
    return None


def _metadata(cluster: Cluster, namespace: str) -> Metadata:
    if namespace == cluster.namespace:
        return cluster.metadata
    of_namespace = getattr(cluster, "metadata_of", None)
    if of_namespace is None:
        raise ValueError(
            f"here only actors of namespace {cluster.namespace} can be resolved, not of {namespace}"
        )
    metadata: Metadata = of_namespace(namespace)
    return metadata


@cache
def _lock() -> threading.Lock:
    return threading.Lock()


@cache
def _directories() -> weakref.WeakKeyDictionary[Cluster, dict[str, ClusterDirectory]]:
    return weakref.WeakKeyDictionary()
