"""Connections to a cluster API: plain to this machine, else TLS with a pinned certificate."""

from __future__ import annotations

import hashlib
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc
import grpc.experimental  # which a channel imports when it is made: see begin_connecting of _host_serve

from fray._pb import cluster_pb2_grpc
from fray.cluster.errors import AccessDeniedError, ClusterUnavailableError
from fray.cluster.remote.failure import Patience, failure_now
from fray.cluster.remote.spec import Spec
from fray.cluster.watch import Ending

_MAX_MESSAGE = 64 << 20  # bytes, the controller's own limit
_OPTIONS: list[tuple[str, Any]] = [
    ("grpc.max_receive_message_length", _MAX_MESSAGE),
    ("grpc.max_send_message_length", _MAX_MESSAGE),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    # FRAY_CLUSTER_ADDRESS is near; a proxy for the world outside is not between.
    ("grpc.enable_http_proxy", 0),
]

# All certificates of controllers are for this name; the fingerprint identifies which of them it is.
_SERVER_NAME = "fray"

_SOON = 10.0  # seconds

PAUSE = 0.5
"""Seconds before a stream that ended, though it had no reason to, is asked for again."""

_Request = TypeVar("_Request")
_Response = TypeVar("_Response")


class Connection:
    """Calls a cluster API, again and again while it is unavailable."""

    def __init__(self, spec: Spec, token: Callable[[], str], timeout: float) -> None:
        self.target = spec.target
        self.timeout = timeout
        self._token = token
        self._channel = _channel(spec, timeout)
        self.cluster = cluster_pb2_grpc.ClusterStub(self._channel)
        self.metadata = cluster_pb2_grpc.MetadataStub(self._channel)
        self.client = cluster_pb2_grpc.ClientStub(self._channel)

    def call(
        self, method: Callable[..., _Response], request: object, timeout: float | None = None
    ) -> _Response:
        """Make a call, whose answer is there within `timeout` seconds; None: those of the connection.

        The request is the same each time, so that one which changes something is carried out once.
        """
        patience = Patience(self.target, self.timeout if timeout is None else timeout)
        while True:
            try:
                return method(request, timeout=patience.left, metadata=self._credentials())
            except grpc.RpcError as err:
                patience.failed(err)

    def call_now(
        self, method: Callable[..., _Response], request: object, timeout: float = _SOON
    ) -> _Response:
        """Make a call once, without waiting for a controller.

        Raises:
            NoControllerError: none leads, as this host's agent reports.
            ClusterUnavailableError: there was no answer within `timeout` seconds.
        """
        metadata = (*self._credentials(), ("fray-no-wait", "1"))
        began = time.monotonic()
        try:
            return method(request, timeout=timeout, metadata=metadata)
        except grpc.RpcError as err:
            raise failure_now(err, self.target, time.monotonic() - began) from err

    def send(self, method: Callable[..., _Response], requests: Callable[[], Iterator[_Request]]) -> _Response:
        """Make a call that streams requests, from the first one on each time."""
        patience = Patience(self.target, self.timeout)
        while True:
            try:
                return method(requests(), metadata=self._credentials())
            except grpc.RpcError as err:
                patience.failed(err)

    def stream(
        self,
        method: Callable[..., Iterator[_Response]],
        request: Callable[[], object],
        ending: Ending | None = None,
    ) -> Iterator[_Response]:
        """Yield what a call streams; when that breaks, of the call that `request` asks for next."""
        ending = ending or Ending()
        patience = Patience(self.target, self.timeout)
        while not ending.over:
            call = method(request(), metadata=self._credentials())
            if isinstance(call, grpc.Call):
                ending.wakes(call.cancel)
            try:
                for response in call:
                    patience.progressed()
                    yield response
                return
            except grpc.RpcError as err:
                if not ending.over:
                    patience.failed(err)
            finally:
                if isinstance(call, grpc.Call):
                    call.cancel()

    def _credentials(self) -> tuple[tuple[str, str], ...]:
        token = self._token()
        return (("authorization", f"Bearer {token}"),) if token else ()

    def close(self) -> None:
        """Close the connection. Calls on their way fail."""
        self._channel.close()


def _channel(spec: Spec, timeout: float) -> grpc.Channel:
    if not spec.fingerprint:
        return grpc.insecure_channel(spec.target, options=_OPTIONS)
    certificate = _certificate(spec, timeout)
    options = [*_OPTIONS, ("grpc.ssl_target_name_override", _SERVER_NAME)]
    pem = ssl.DER_cert_to_PEM_cert(certificate).encode()
    return grpc.secure_channel(
        spec.target, grpc.ssl_channel_credentials(root_certificates=pem), options=options
    )


def _certificate(spec: Spec, timeout: float) -> bytes:
    """Return the certificate that has the fingerprint, from whom it pins.

    gRPC can trust a certificate, but not a fingerprint. So it is fetched first, without trust, and given
    to gRPC as the only one to trust.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        with (
            socket.create_connection((spec.host, spec.port), min(timeout, 10)) as plain,
            context.wrap_socket(plain, server_hostname=_SERVER_NAME) as secured,
        ):
            certificate = secured.getpeercert(binary_form=True) or b""
    except OSError as err:
        raise ClusterUnavailableError(spec.target, 1, 0, str(err)) from err
    found = hashlib.sha256(certificate).hexdigest()
    if found != spec.fingerprint:
        raise AccessDeniedError(
            f"the controller at {spec.target} shows a certificate with fingerprint {found}, "
            f"not {spec.fingerprint}; the stack's lease names the controller that leads now"
        )
    return certificate
