"""Calls of an Iris controller: Connect's unary protocol, POST with JSON (connectrpc.com/docs/protocol)."""

from __future__ import annotations

import http.client
import json
import logging
import os
import random
import threading
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fray.cluster.errors import (
    AccessDeniedError,
    AlreadyExistsError,
    ClusterError,
    ClusterUnavailableError,
    InvalidRequestError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
)
from fray.cluster.iris.dialect import CONTROLLER, JUNE, OCTOBER, Dialect
from fray.cluster.iris.spec import Spec, is_loopback, is_own, task_of
from fray.cluster.watch import Ending

_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries
_CALL = 60.0  # seconds that one try may take
_AWAY = ("unavailable", "deadline_exceeded")
_GATEWAY = (502, 503, 504)  # of a proxy before the controller
_log = logging.getLogger("fray")

Body = Mapping[str, Any]

_ERRORS: Mapping[str, type[ClusterError]] = {
    "already_exists": AlreadyExistsError,
    "failed_precondition": RefusedError,
    "invalid_argument": InvalidRequestError,
    "not_found": NotFoundError,
    "out_of_range": InvalidRequestError,
    "permission_denied": AccessDeniedError,
    "resource_exhausted": RefusedError,
    "unauthenticated": AccessDeniedError,
    "unimplemented": UnsupportedError,
}
"""What Connect's error codes mean."""


@dataclass(frozen=True)
class InterruptedCallError(Exception):
    """A call was not answered. It may have been carried out if it was `sent`."""

    last: str
    sent: bool
    stale: bool = False
    """The connection was kept since an earlier call, and the controller had closed it."""


class Connection:
    """Calls one controller, again and again while it is away."""

    def __init__(self, spec: Spec, timeout: float) -> None:
        """Make a connection, which is used from the first call on.

        Raises:
            AccessDeniedError: a user's token would leave this machine in plain text.
        """
        self.spec, self.timeout = spec, timeout
        task = task_of(os.environ)
        given = os.environ.get("FRAY_CLUSTER_TOKEN", "")
        if given and not spec.tls and not is_loopback(spec.host):
            raise AccessDeniedError(
                f"the token of FRAY_CLUSTER_TOKEN would leave this machine in plain text: {spec.host} is "
                "another one; add ?tls=1 for a controller behind TLS, or use a tunnel to localhost"
            )
        self._token = given or (task.token if task and is_own(spec, os.environ) else "")
        self._idle = _Idle()
        self._gone = weakref.finalize(self, self._idle.close)
        self._dialect: Dialect | None = None

    def call(
        self, method: str, body: Body, timeout: float | None = None, ending: Ending | None = None
    ) -> Any:
        """Call a method of the controller, again while it does not answer; None: for the connection's time.

        It must be one that may be carried out twice.

        Raises:
            ClusterUnavailableError: there was no answer in that time, or not before the ending.
            ClusterError: it was rejected.
        """
        return self._again(f"{CONTROLLER}/{method}", body, timeout, ending)

    def call_endpoints(
        self, method: str, body: Body, timeout: float | None = None, ending: Ending | None = None
    ) -> Any:
        """Call a method of the registry of endpoints, as `call` does."""
        return self._again(f"{self.dialect.endpoints}/{method}", body, timeout, ending)

    def call_logs(self, method: str, body: Body) -> Any:
        """Call a method of the log server, as `call` does."""
        return self._again(f"{self.dialect.logs}/{method}", body, None, None)

    @property
    def dialect(self) -> Dialect:
        """What this controller speaks, which it is asked for once."""
        if self._dialect is None:
            body = {"prefix": "/fray/", "exact": True}
            try:
                self._again(f"{OCTOBER.endpoints}/ListEndpoints", body, None, None)
                self._dialect = OCTOBER
            except UnsupportedError:
                self._dialect = JUNE
        return self._dialect

    def once(self, path: str, body: Body, seconds: float = _CALL) -> Any:
        """Call once.

        Raises:
            InterruptedCallError: there was no answer.
            ClusterError: it was rejected.
        """
        content = json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Connect-Protocol-Version": "1"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = self._idle.take(seconds)
        stale = connection is not None
        if connection is None:
            kind = http.client.HTTPSConnection if self.spec.tls else http.client.HTTPConnection
            connection = kind(self.spec.host, self.spec.port, timeout=seconds)
        sent = False
        try:
            connection.request("POST", path, content, headers)
            sent = True
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as err:
            connection.close()
            raise InterruptedCallError(_text(err), sent, stale and isinstance(err, ConnectionError)) from err
        self._idle.give(connection)
        return self._answer(path, response.status, data)

    def _answer(self, path: str, status: int, data: bytes) -> Any:
        try:
            answer = json.loads(data) if data else {}
        except ValueError:
            answer = None
        if status == http.client.OK and isinstance(answer, dict):
            return answer
        if isinstance(answer, dict) and "code" in answer:
            code, message = str(answer["code"]), str(answer.get("message", ""))
            if code in _AWAY:
                raise InterruptedCallError(f"{code}: {message}", True)
            kind = _ERRORS.get(code)
            raise kind(message) if kind else ClusterError(f"{code}: {message}")
        if status in _GATEWAY:
            raise InterruptedCallError(f"HTTP status {status}", True)
        if status == http.client.NOT_FOUND:
            raise UnsupportedError(
                f"what answers at {self.spec.target} has no {path}: is it the controller of Iris, "
                "in a release of June 2026 or later?"
            )
        if status in (http.client.UNAUTHORIZED, http.client.FORBIDDEN):
            raise AccessDeniedError(
                f"the controller at {self.spec.target} wants a token of another kind, or one at all: set "
                f"FRAY_CLUSTER_TOKEN (HTTP status {status})"
            )
        raise ClusterError(f"the controller at {self.spec.target} answered with HTTP status {status}")

    def _again(self, path: str, body: Body, timeout: float | None, ending: Ending | None) -> Any:
        patience = Patience(self.spec.target, self.timeout if timeout is None else timeout, ending)
        while True:
            try:
                return self.once(path, body, min(_CALL, patience.left))
            except InterruptedCallError as err:
                patience.failed(err)

    def close(self) -> None:
        """Close what is open. A later call opens it again."""
        self._idle.close()


class _Idle:
    """HTTP connections that no call uses."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections: list[http.client.HTTPConnection] = []

    def take(self, seconds: float) -> http.client.HTTPConnection | None:
        """Return one for a call of at most so many seconds, None if there is none."""
        with self._lock:
            connection = self._connections.pop() if self._connections else None
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(seconds)
        return connection

    def give(self, connection: http.client.HTTPConnection) -> None:
        """Take one back."""
        with self._lock:
            self._connections.append(connection)

    def close(self) -> None:
        """Close all."""
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            connection.close()


class Patience:
    """Decides how long to try again."""

    def __init__(self, target: str, seconds: float, ending: Ending | None = None) -> None:
        self._target, self._seconds = target, seconds
        self._ending = ending or Ending()
        self._began = time.monotonic()
        self._tries = 0

    @property
    def left(self) -> float:
        """Seconds until it is over, at least a moment."""
        return max(0.001, self._began + self._seconds - time.monotonic())

    def failed(self, err: InterruptedCallError) -> None:
        """Wait until the next try.

        Raises:
            ClusterUnavailableError: the time is over.
        """
        if err.stale:
            return
        self._tries += 1
        if self._tries == 1:
            _log.warning(
                "the Iris controller at %s does not answer, trying again: %s", self._target, err.last
            )
        pause = random.uniform(0.5, 1) * min(_LONGEST, _FIRST * 2 ** min(self._tries - 1, 10))
        elapsed = time.monotonic() - self._began
        if self._ending.over or elapsed + pause >= self._seconds:
            raise ClusterUnavailableError(self._target, self._tries, elapsed, err.last) from err
        self._ending.wait(pause)


def _text(err: Exception) -> str:
    return str(err) or type(err).__name__
