"""Where the actors of a cluster are: a copy of its registry in memory, kept up to date by a watch.

Which endpoint a call goes to is left to `_calling.target`.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from _thread import start_new_thread
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from fray._latch import Latch
from fray._locks import Changes
from fray.cluster.attached import attached
from fray.cluster.errors import ActorNotFoundError, ClusterError
from fray.cluster.watch import Watch
from fray.rpc._calling.resolve import Endpoint, Fate, RouteTable, completed
from fray.rpc._transport import fork as _fork

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fray.cluster.protocols import Cluster, Metadata
    from fray.cluster.types import ActorChanges, ActorEndpoint
    from fray.rpc._transport.settings import Settings

_PAUSE = 0.5  # seconds before a watch that broke is begun again
_LAG = 1.0  # seconds by which a watch may know later than a lookup
_FOUNDING = 0.1  # seconds between two checks whether a namespace is founded
_log = logging.getLogger("fray.rpc")


class ClusterDirectory:
    """What is registered in a namespace. It is read from memory once the watch has reported all there is."""

    knows_fates = True

    def __init__(self, cluster: Cluster, metadata: Metadata, namespace: str) -> None:
        """Make the directory of a namespace; "": the one that the cluster's first launch founds."""
        self._cluster, self._namespace, self.metadata = cluster, namespace, metadata
        self.routes = RouteTable()
        self.forget_parent()
        _fork.begins_anew(self)

    def forget_parent(self) -> None:
        """Begin anew, without a watch."""
        self._changed = Changes()
        self._watcher: _Watcher | None = None
        self._live = False  # all that there is has been reported
        self._known: dict[str, dict[str, Endpoint]] = {}  # by name, then by incarnation
        self._names: dict[str, str] = {}  # by incarnation
        self._versions: dict[str, int] = {}  # counts changes of a name
        self._seen: dict[str, int] = {}  # the version that was read last

    @property
    def namespace(self) -> str:
        """Whose names it knows; "" as long as none is founded."""
        self._namespace = self._namespace or self._cluster.namespace
        return self._namespace

    def settings(self, given: Settings, wait: bool = True) -> Settings | None:
        """Return settings with the namespace, and with what this process shows to its actors."""
        if not self.namespace:
            return None
        identity_of = getattr(self._cluster, "identity_of", None)
        identity: str | None = given.identity
        if not identity:
            if identity_of is None:
                identity = os.environ.get("FRAY_ACTOR_IDENTITY", "")
            else:
                identity = identity_of(self.namespace, wait)
        if identity is None:
            return None
        renew = getattr(self._cluster, "renew_identity", None)
        if renew is not None:
            given = replace(given, renew_identity=partial(renew, self.namespace))
        secret_of = getattr(self._cluster, "actor_secret", None) if not identity else None
        secret = secret_of(self.namespace) if secret_of is not None else b""
        return completed(given, self.namespace, identity, secret)

    def endpoints(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name, the oldest first."""
        # What is not there may have come a moment ago.
        return self.known(name) or self._asked(name)

    def known(self, name: str) -> list[Endpoint]:
        """Return the endpoints of a name that are in memory."""
        self._watch()
        with self._changed.lock:
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
        return [_endpoint(each) for each in self.metadata.lookup_all(name)]

    def wait(self, name: str, timeout: float) -> None:
        """Return when the endpoints of a name may have changed since they were read."""
        if not self.namespace:
            timeout = min(timeout, _FOUNDING)
        with self._changed.lock:
            seen = self._seen.get(name, 0)
            self._changed.wait_for(lambda: self._versions.get(name, 0) != seen, timeout)

    def missing(self, name: str) -> str:
        """Return why there is no endpoint of a name, with suggestions, as text."""
        try:
            self.metadata.lookup(name)
        except ActorNotFoundError as err:
            return str(err)
        except ClusterError:
            pass
        return f'no actor "{name}" is registered in namespace {self.namespace}'

    def fate(self, name: str, job_id: str = "") -> Fate:
        """Return whether the actor of a name is gone for good, see Directory.fate."""
        lookup = getattr(self.metadata, "lookup_of_job", None) if job_id else None
        try:
            if lookup is not None:
                lookup(name, job_id)
            else:
                self.metadata.lookup(name)
        except ActorNotFoundError as err:
            return Fate(err.death, err.undecided)
        except ClusterError:
            pass
        return Fate(undecided=True)

    def _watch(self) -> None:
        if not self.namespace:
            return
        with self._changed.lock:
            if self._watcher is None:
                self._watcher = _Watcher(self)

    def close(self) -> None:
        """End the watch, until the next lookup."""
        with self._changed.lock:
            watcher = self._watcher
        if watcher is not None:
            watcher.close()

    def take(self, changes: ActorChanges, watcher: _Watcher) -> None:
        """Apply changes that the present watcher reports."""
        with self._changed.lock:
            if watcher is not self._watcher:
                return
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

    def blind(self, watcher: _Watcher, over: bool) -> None:
        """Forget what is known, as the watcher may miss changes; `over`: for good."""
        with self._changed.lock:
            if watcher is self._watcher:
                self._known, self._names, self._live = {}, {}, False
                if over:
                    self._watcher = None


class _Watcher:
    """Reports changes to a directory, on a thread, until `close` or the last reference to the directory goes.

    It keeps neither the directory nor its cluster alive.
    """

    def __init__(self, directory: ClusterDirectory) -> None:
        self._directory = weakref.ref(directory)
        self._lock = threading.Lock()
        self._watch: Iterator[ActorChanges] | None = None
        self._closed = Latch()
        # The thread that drops the last reference may hold any lock, so another one closes this.
        self._gone = weakref.finalize(directory, start_new_thread, self.close, ())
        self._gone.atexit = False
        name = f"fray-watch-{directory.namespace}"
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def close(self) -> None:
        """End the watch."""
        self._closed.set()
        with self._lock:
            watch = self._watch
        if isinstance(watch, Watch):
            watch.close()
        self._blind(over=True)

    def _run(self) -> None:
        while (watch := self._begin()) is not None:
            try:
                for changes in watch:
                    directory = self._directory()
                    if directory is None or self._closed.is_set():
                        return
                    directory.take(changes, self)
                    del directory
            except Exception as err:
                _log.debug("watching for actors is begun again: %s", err)
            self._blind(over=False)
            self._closed.wait(_PAUSE)

    def _begin(self) -> Iterator[ActorChanges] | None:
        directory = self._directory()
        if directory is None:
            return None
        try:
            watch = directory.metadata.watch()
        except Exception as err:
            _log.debug("actors cannot be watched: %s", err)
            return iter(())
        with self._lock:
            self._watch = watch
        return None if self._closed.is_set() else watch

    def _blind(self, over: bool) -> None:
        directory = self._directory()
        if directory is None:
            return
        directory.blind(self, over)
        if over:
            self._gone.detach()


def _endpoint(each: ActorEndpoint) -> Endpoint:
    place = f"{each.job_id}/{each.task}" if each.job_id else ""
    return Endpoint(each.name, each.address, each.actor_id, place)


class _Directories:
    """The directories of a cluster, by namespace."""

    def __init__(self) -> None:
        self.known: dict[str, ClusterDirectory] = {}

    @property
    def busy(self) -> bool:
        """Return False: what it does is done again where it is needed."""
        return False

    def close(self) -> None:
        """End all watches."""
        with _lock():
            known = list(self.known.values())
        for directory in known:
            directory.close()


def directory_of(cluster: Cluster, namespace: str | None) -> ClusterDirectory:
    """Return the directory of a namespace of a cluster, always the same for the same one."""
    with _lock():
        known = attached(cluster, _Directories, _Directories).known
        wanted = namespace or cluster.namespace
        founded = known.get("")
        if founded is not None and founded.namespace:
            known.setdefault(founded.namespace, known.pop(""))
        found = known.get(wanted)
        if found is None:
            found = known[wanted] = ClusterDirectory(cluster, _metadata(cluster, wanted), wanted)
            _in_use().add(found)
        return found


def directory_that_knows(name: str, namespace: str, address: str) -> ClusterDirectory | None:
    """Return the directory in use in this process that has an actor at an address."""
    with _lock():
        used = list(_in_use())
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
def _lock() -> threading.RLock:
    return threading.RLock()


@cache
def _in_use() -> weakref.WeakSet[ClusterDirectory]:
    return weakref.WeakSet()
