"""The session of this process at a cluster, with which the actors end that it created.

A call holds it for as long as the process lives. After a SIGKILL the connection breaks, and the cluster ends
what belongs to the session once its lease is over.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import threading
import uuid

from fray._latch import Latch
from fray._pb import cluster_pb2 as pb
from fray.cluster.errors import ClusterError, UnsupportedError
from fray.cluster.remote.connection import PAUSE, Connection
from fray.cluster.watch import Ending

_LAST = 2.0  # seconds that the end of the process waits for a cluster which does not answer
_log = logging.getLogger("fray")


class Session:
    """Held from the beginning until the process ends."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.id = uuid.uuid4().hex
        self._request = pb.HoldSessionRequest(session=self.id)
        self._ending, self._known = Ending(), Latch()
        self._error: ClusterError | None = None
        threading.Thread(target=self._hold, name="fray session", daemon=True).start()
        atexit.register(self.close)

    @property
    def busy(self) -> bool:
        """See Attachment."""
        return False

    def held(self) -> str:
        """Wait until it is held, and return its id; "": the cluster has no sessions.

        Raises:
            ClusterError: it cannot be held.
        """
        self._known.wait()
        if isinstance(self._error, UnsupportedError):
            return ""
        if self._error is not None:
            raise self._error
        return self.id

    def _hold(self) -> None:
        connection = self._connection
        while not self._ending.over:
            try:
                for _ in connection.stream(
                    connection.cluster.HoldSession, lambda: self._request, self._ending
                ):
                    self._error = None
                    self._known.set()
            except UnsupportedError as err:
                _log.warning("actors outlive this program unless it shuts its client down: %s", err)
                self._error = err
                self._known.set()
                return
            except ClusterError as err:
                self._error = err
                self._known.set()
            self._ending.wait(PAUSE)

    def close(self) -> None:
        """End it: the cluster ends what belongs to it now, or else once its lease is over."""
        atexit.unregister(self.close)
        if self._ending.over:
            return
        self._ending.end()
        if self._error is None:
            with contextlib.suppress(ClusterError):
                request = pb.EndSessionRequest(session=self.id)
                self._connection.call_now(self._connection.cluster.EndSession, request, _LAST)
