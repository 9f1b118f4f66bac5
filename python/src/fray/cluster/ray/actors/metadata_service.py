"""The service Metadata of the cluster API, by which Go programs and processes without Ray find actors.

It answers from the registry. Clients show the registry's token. Callers on its own machine, which are of the
same user, get the identity of a namespace as a file, as `fray run` gives it to its program.
"""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import grpc
import grpc.aio

from fray._pb import cluster_pb2 as pb
from fray._pb import cluster_pb2_grpc, status_pb2
from fray.cluster.errors import (
    ActorNotFoundError,
    AlreadyExistsError,
    ClusterError,
    InvalidRequestError,
    NotFoundError,
    RefusedError,
)
from fray.cluster.ray.actors.certificates import ServerCertificate
from fray.cluster.ray.actors.endpoint_registry import EndpointRegistry
from fray.cluster.ray.actors.endpoint_table import Selection
from fray.cluster.types import ActorEndpoint, ActorId, JobId, Namespace

_LOOPBACK = "127.0.0.1"
_POLL = 30.0  # seconds until a stream checks that its client is there
_NO_NAMESPACE = InvalidRequestError.of("namespace", "name one, as by ?namespace= in fray://")
_CODES: tuple[tuple[type[ClusterError], grpc.StatusCode], ...] = (
    (ActorNotFoundError, grpc.StatusCode.NOT_FOUND),
    (NotFoundError, grpc.StatusCode.NOT_FOUND),
    (AlreadyExistsError, grpc.StatusCode.ALREADY_EXISTS),
    (InvalidRequestError, grpc.StatusCode.INVALID_ARGUMENT),
    (RefusedError, grpc.StatusCode.FAILED_PRECONDITION),
)
_NOT_FOUND = 5  # google.rpc.Code


@dataclass(frozen=True)
class Access:
    """How clients reach the service, and what they show."""

    port: int
    """0: any."""
    address: str
    """The address of the machine, where clients of others reach it by TLS."""
    token: str
    certificate: ServerCertificate


class MetadataService:
    """Serves on the loopback address in plain text, and on that of the machine by TLS."""

    def __init__(self, registry: EndpointRegistry, access: Access, identity: Callable[[str], Path]) -> None:
        """Take a registry; `identity` writes the file of a namespace for processes of this machine."""
        self._access = access
        self._server = grpc.aio.server(interceptors=(_TokenCheck(access.token),))
        cluster_pb2_grpc.add_MetadataServicer_to_server(_Metadata(registry), self._server)
        cluster_pb2_grpc.add_ClientServicer_to_server(_Client(identity), self._server)
        self.port = 0

    async def start(self) -> None:
        """Listen: at the wanted port, or at another where that is taken."""
        try:
            self.port = self._server.add_insecure_port(f"{_LOOPBACK}:{self._access.port}")
        except RuntimeError:  # another program has it
            self.port = self._server.add_insecure_port(f"{_LOOPBACK}:0")
        pair = (self._access.certificate.key, self._access.certificate.certificate)
        if self._access.address != _LOOPBACK:
            credentials = grpc.ssl_server_credentials([pair])
            self._server.add_secure_port(f"{self._access.address}:{self.port}", credentials)
        await self._server.start()

    async def stop(self) -> None:
        """End all streams, and take no more calls."""
        await self._server.stop(None)


class _TokenCheck(grpc.aio.ServerInterceptor):
    """Rejects calls without the token."""

    def __init__(self, token: str) -> None:
        self._wanted = f"Bearer {token}".encode()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Pass a call on, or reject it."""
        handler = await continuation(handler_call_details)
        shown = dict(handler_call_details.invocation_metadata or ()).get("authorization", "")
        data = shown if isinstance(shown, bytes) else shown.encode()
        if hmac.compare_digest(data, self._wanted) or handler is None:
            return handler
        text = "the token is missing or wrong: set FRAY_CLUSTER_TOKEN to what the registry's access shows"

        async def refuse(_request: Any, context: Any) -> None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, text)

        async def refuse_stream(_request: Any, context: Any) -> AsyncIterator[Any]:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, text)
            yield

        make = grpc.unary_stream_rpc_method_handler if handler.response_streaming else None
        if make is not None:
            return make(refuse_stream, handler.request_deserializer, handler.response_serializer)
        return grpc.unary_unary_rpc_method_handler(
            refuse, handler.request_deserializer, handler.response_serializer
        )


class _Metadata(cluster_pb2_grpc.MetadataServicer):
    """The service itself. The names of its methods are those of the protocol."""

    def __init__(self, registry: EndpointRegistry) -> None:
        self._registry = registry

    async def Register(self, request: pb.RegisterRequest, context: Any) -> pb.RegisterResponse:  # noqa: N802
        """Make an endpoint known."""
        endpoint = ActorEndpoint(
            ActorId(request.actor_id),
            request.name,
            request.address,
            JobId(request.job_id),
            Namespace(""),
            dict(request.metadata),
            request.task,
        )
        ttl = request.ttl.ToNanoseconds() / 1e9 if request.HasField("ttl") else None
        try:
            if not request.job_id:
                raise InvalidRequestError.of("job_id", "name the job whose task this is")
            made = self._registry.register(Namespace(""), endpoint, request.unique, ttl)
        except ClusterError as err:
            await _abort(err, context)
        return pb.RegisterResponse(actor_id=made)

    async def Unregister(self, request: pb.UnregisterRequest, context: Any) -> pb.UnregisterResponse:  # noqa: N802, ARG002
        """Forget an endpoint."""
        self._registry.unregister([ActorId(request.actor_id)])
        return pb.UnregisterResponse()

    async def Lookup(self, request: pb.LookupRequest, context: Any) -> pb.ActorEndpoint:  # noqa: N802
        """Find the newest endpoint of a name."""
        namespace = await _namespace(request.namespace, context)
        try:
            return _message(self._registry.lookup(namespace, request.name, request.job_id))
        except ActorNotFoundError as err:
            near = self._registry.near(namespace, request.name)
            await _abort_missing(err, request, near, context)

    async def LookupAll(self, request: pb.LookupRequest, context: Any) -> pb.ListActorsResponse:  # noqa: N802
        """Find all endpoints of a name."""
        namespace = await _namespace(request.namespace, context)
        found = self._registry.lookup_all(namespace, request.name)
        return pb.ListActorsResponse(actors=[_message(each) for each in found])

    async def ListActors(self, request: pb.ListActorsRequest, context: Any) -> pb.ListActorsResponse:  # noqa: N802
        """List the endpoints whose names begin so."""
        namespace = await _namespace(request.namespace, context)
        found = self._registry.list_actors(namespace, request.prefix)
        return pb.ListActorsResponse(actors=[_message(each) for each in found])

    async def Watch(self, request: pb.WatchRequest, context: Any) -> AsyncIterator[pb.WatchResponse]:  # noqa: N802
        """Send what there is, then what changes."""
        namespace = await _namespace(request.namespace, context)
        wanted = Selection(namespace, request.name, request.prefix)
        boot, version = "", 0
        while True:
            try:
                found = await self._registry.poll(wanted, boot, version, _POLL, request.job_id)
            except ClusterError as err:
                await _abort(err, context)
            boot, version = found.boot, found.version
            if found.changes is not None:
                yield pb.WatchResponse(
                    reset=found.changes.reset,
                    added=[_message(each) for each in found.changes.added],
                    removed=found.changes.removed,
                )


class _Client(cluster_pb2_grpc.ClientServicer):
    """Gives processes of this machine what they show to actors."""

    def __init__(self, identity: Callable[[str], Path]) -> None:
        self._identity = identity

    async def Identity(self, request: pb.IdentityRequest, context: Any) -> pb.IdentityResponse:  # noqa: N802
        """Write the identity of a namespace to a file, and answer its path."""
        namespace = await _namespace(request.namespace, context)
        if not context.peer().startswith(f"ipv4:{_LOOPBACK}:"):
            text = "files are for this machine only: set FRAY_ACTOR_IDENTITY, see the guide of actors on Ray"
            await context.abort(grpc.StatusCode.UNIMPLEMENTED, text)
        return pb.IdentityResponse(file=str(self._identity(namespace)))


async def _namespace(asked: str, context: Any) -> Namespace:
    if not asked:
        await _abort(_NO_NAMESPACE, context)
    return Namespace(asked)


async def _abort(err: ClusterError, context: Any) -> NoReturn:
    code = next((code for kind, code in _CODES if isinstance(err, kind)), grpc.StatusCode.INTERNAL)
    await context.abort(code, str(err))
    raise err  # abort has raised


async def _abort_missing(
    err: ActorNotFoundError, request: pb.LookupRequest, near: list[str], context: Any
) -> NoReturn:
    """Report what became of an actor, as the controller of a fray cluster does."""
    detail = pb.ActorNotFound(
        name=request.name, namespace=request.namespace, near=near, death=err.death, undecided=err.undecided
    )
    details = status_pb2.Status(code=_NOT_FOUND, message=str(err))
    packed = details.details.add(type_url="type.googleapis.com/fray.cluster.v1.ActorNotFound")
    packed.value = detail.SerializeToString()
    context.set_trailing_metadata((("grpc-status-details-bin", details.SerializeToString()),))
    await context.abort(grpc.StatusCode.NOT_FOUND, str(err))
    raise err  # abort has raised


def _message(endpoint: ActorEndpoint) -> pb.ActorEndpoint:
    return pb.ActorEndpoint(
        actor_id=endpoint.actor_id,
        name=endpoint.name,
        address=endpoint.address,
        job_id=endpoint.job_id,
        namespace=endpoint.namespace,
        metadata=endpoint.metadata,
        task=endpoint.task,
    )
