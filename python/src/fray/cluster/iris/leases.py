"""Renews the leases of endpoints that this process has registered."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fray.cluster.errors import ClusterError, ClusterUnavailableError
from fray.cluster.iris.answer import number

LEASE = 600.0
"""Seconds that are asked for; Iris grants 180 to 600."""
_AGAIN = 10.0  # seconds after a renewal that failed
_log = logging.getLogger("fray")

Body = Mapping[str, Any]


@dataclass(frozen=True)
class Lease:
    """What renews one endpoint, and when."""

    body: Body
    """The request that registered it."""
    due: float
    """By time.monotonic()."""


class Leases:
    """Renews each lease after a third of its time, on a thread that begins with the first."""

    def __init__(self, register: Callable[[Body], Any]) -> None:
        """Make none; `register` sends a request and returns the answer."""
        self._register = register
        self._changed = threading.Condition()
        self._leases: dict[str, Lease] = {}
        self._renewed: str | None = None  # the endpoint of the request on its way
        self._running = False

    @property
    def busy(self) -> bool:
        """See Attachment."""
        return False

    def keep(self, body: Body, answer: Body) -> None:
        """Renew what a request has registered, from its answer on."""
        with self._changed:
            self._leases[body["endpointId"]] = Lease(body, time.monotonic() + granted(answer) / 3)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="fray leases", daemon=True).start()
            self._changed.notify_all()

    def drop(self, endpoint_id: str) -> None:
        """Renew an endpoint no more; a renewal that is on its way has ended then."""
        with self._changed:
            self._leases.pop(endpoint_id, None)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._renewed != endpoint_id)

    def close(self) -> None:
        """Renew nothing more."""
        with self._changed:
            self._leases.clear()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._leases:
                    self._running = False
                    return
                endpoint_id, lease = min(self._leases.items(), key=lambda each: each[1].due)
                left = lease.due - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                self._renewed = endpoint_id
            renewed = self.renewed(lease)
            with self._changed:
                self._renewed = None
                if endpoint_id in self._leases:
                    if renewed is None:
                        del self._leases[endpoint_id]
                    else:
                        self._leases[endpoint_id] = renewed
                self._changed.notify_all()

    def renewed(self, lease: Lease) -> Lease | None:
        """Renew a lease now, and return it with the next time; None: its task is over."""
        name = lease.body["name"]
        try:
            answer = self._register(lease.body)
        except ClusterUnavailableError as err:
            _log.warning("the endpoint %s is not renewed yet: %s", name, err)
            return replace(lease, due=time.monotonic() + _AGAIN)
        except ClusterError as err:
            _log.warning("the endpoint %s is renewed no more: %s", name, err)
            return None
        return replace(lease, due=time.monotonic() + granted(answer) / 3)


def granted(answer: Body) -> float:
    """Return the seconds of the lease that an answer grants."""
    return number(answer.get("leaseDuration", {}).get("milliseconds")) / 1000 or LEASE
