"""What gRPC statuses mean as exceptions, and how long to go on after one."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import grpc
from google.protobuf.message import DecodeError

from fray._pb import cluster_pb2 as pb
from fray._pb import status_pb2
from fray.cluster.errors import (
    AccessDeniedError,
    ActorNotFoundError,
    AlreadyExistsError,
    ClusterError,
    ClusterUnavailableError,
    FieldError,
    InvalidRequestError,
    NoControllerError,
    NotFoundError,
    RefusedError,
    UnsupportedError,
    WaitTimeoutError,
)

_Detail = TypeVar("_Detail")
_DETAILS = "grpc-status-details-bin"
_FIRST, _LONGEST = 0.1, 5.0  # seconds between two tries
_log = logging.getLogger("fray")


def error_of(err: grpc.RpcError) -> ClusterError:
    """Return the exception that a status other than UNAVAILABLE stands for."""
    code, details = code_of(err), details_of(err)
    match code:
        case grpc.StatusCode.INVALID_ARGUMENT:
            fields = _fields(err)
            return InvalidRequestError("the request is invalid" if fields else details, fields)
        case grpc.StatusCode.NOT_FOUND:
            return _not_found(err, details)
        case grpc.StatusCode.ALREADY_EXISTS:
            return AlreadyExistsError(details)
        case grpc.StatusCode.PERMISSION_DENIED | grpc.StatusCode.UNAUTHENTICATED:
            return AccessDeniedError(details)
        case grpc.StatusCode.FAILED_PRECONDITION:
            return RefusedError(details)
        case grpc.StatusCode.DEADLINE_EXCEEDED:
            return WaitTimeoutError(details)
        case grpc.StatusCode.UNIMPLEMENTED:
            return UnsupportedError(details)
        case _:
            return ClusterError(f"{code.name}: {details}")


def failure_now(err: grpc.RpcError, target: str, seconds: float) -> ClusterError:
    """Return what the status of a call means that is made once, without retries."""
    trailing: Iterable[tuple[str, str | bytes]] = ()
    if isinstance(err, grpc.Call):
        trailing = err.trailing_metadata() or ()
    if ("fray-reason", "NO_CONTROLLER") in list(trailing):
        return NoControllerError(target, 1, seconds, details_of(err))
    if code_of(err) in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
        return ClusterUnavailableError(target, 1, seconds, details_of(err))
    return error_of(err)


def code_of(err: grpc.RpcError) -> grpc.StatusCode:
    """Return the status code of a call that failed."""
    return err.code() if isinstance(err, grpc.Call) else grpc.StatusCode.UNKNOWN


def details_of(err: grpc.RpcError) -> str:
    """Return the message of a call that failed."""
    return (err.details() if isinstance(err, grpc.Call) else None) or str(err)


def _not_found(err: grpc.RpcError, text: str) -> NotFoundError:
    for value in _details(err, "fray.cluster.v1.ActorNotFound", pb.ActorNotFound.FromString):
        return ActorNotFoundError(text, value.death, value.undecided)
    return NotFoundError(text)


def _fields(err: grpc.RpcError) -> list[FieldError]:
    """Return the field violations among the details of a status."""
    requests = _details(err, "google.rpc.BadRequest", status_pb2.BadRequest.FromString)
    return [FieldError(v.field, v.description) for request in requests for v in request.field_violations]


def _details(err: grpc.RpcError, name: str, parse: Callable[[bytes], _Detail]) -> list[_Detail]:
    """Return the details of a status that are messages of a name."""
    trailing: Iterable[tuple[str, str | bytes]] = ()
    if isinstance(err, grpc.Call):
        trailing = err.trailing_metadata() or ()
    data = next((value for key, value in trailing if key == _DETAILS and isinstance(value, bytes)), b"")
    try:
        details = status_pb2.Status.FromString(data).details
        return [parse(detail.value) for detail in details if detail.type_url.endswith(f"/{name}")]
    except DecodeError:
        _log.warning("the details of an error cannot be read")
        return []


class Patience:
    """Decides how long to try again: until `seconds` have gone by without progress."""

    def __init__(self, target: str, seconds: float) -> None:
        self._target, self._seconds = target, seconds
        self._began = time.monotonic()
        self._tries = 0
        self._said = ""  # by what answered last

    @property
    def left(self) -> float:
        """Seconds until it is over, at least a moment."""
        return max(0.001, self._began + self._seconds - time.monotonic())

    def progressed(self) -> None:
        """Start again."""
        self._began, self._tries, self._said = time.monotonic(), 0, ""

    def failed(self, err: grpc.RpcError) -> None:
        """Wait until the next try.

        Raises:
            ClusterUnavailableError: the time is over.
            ClusterError: trying again is of no use.
        """
        if code_of(err) not in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED):
            raise error_of(err) from None  # which has all of it
        self._tries += 1
        if not self._said or code_of(err) is not grpc.StatusCode.DEADLINE_EXCEEDED:
            self._said = details_of(err)  # that the time of the last try was short tells less
        if self._tries == 1:
            _log.warning("the cluster at %s does not answer, trying again: %s", self._target, self._said)
        pause = random.uniform(0.5, 1) * min(_LONGEST, _FIRST * 2 ** min(self._tries - 1, 10))
        elapsed = time.monotonic() - self._began
        if elapsed + pause >= self._seconds:
            raise ClusterUnavailableError(self._target, self._tries, elapsed, self._said) from err
        time.sleep(pause)
