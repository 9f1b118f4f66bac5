"""The service Actors for general gRPC clients, with health and reflection.

It is a server of grpcio on a socket that only this process can reach; whatever follows an HTTP/2 preface on
the port of the actors is passed on to it. So a program whose clients speak frames does not import grpcio,
which is slow.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import socket
import tempfile
import threading
from collections import deque
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from fray._pb import actor_pb2
from fray.rpc._serving.call import ServerCall
from fray.rpc._serving.event_loop import EventLoop
from fray.rpc._serving.reply import error_reply
from fray.rpc._transport import large as _large
from fray.rpc._transport.http import send_all
from fray.rpc._transport.wire import MAX_FRAME, result_too_large
from fray.rpc.errors import TooLargeError, of_wire

if TYPE_CHECKING:
    from fray.rpc._serving.core import Core
    from fray.rpc._serving.reply import Answerer
    from fray.rpc._serving.stream import ServerStream
    from fray.rpc._transport.wire import Buffer, Stream

_SERVICE: Final = "fray.actor.v1.Actors"
_SLOW: Final = 2.0  # seconds that grpcio may take longer than its limit
_SLACK: Final = 64 << 10  # bytes of a message beside what max_message_bytes counts


class _Waiter:
    """Takes a reply to the coroutine that awaits it."""

    takes_streams = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[actor_pb2.Reply] = self._loop.create_future()

    def answer(self, reply: actor_pb2.Reply, buffers: Sequence[Buffer], later: bool) -> None:  # noqa: ARG002
        """Hand it over."""
        if buffers:
            reply.buffers.extend(bytes(b) for b in buffers)

        def settle() -> None:
            if not self.future.done():
                self.future.set_result(reply)

        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(settle)


class _StreamWaiter:
    """Takes the items of a stream to the coroutine that sends them, and the reply after them."""

    takes_streams = True
    left = False

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._changed = asyncio.Event()
        self._stream: ServerStream | None = None
        self._replies: deque[actor_pb2.Reply] = deque()
        self._last: actor_pb2.Reply | None = None

    def wake(self, stream: ServerStream) -> None:
        """Have the coroutine take what the stream has."""
        self._stream = stream
        self._notify()

    def items(self, items: actor_pb2.Items, buffers: Sequence[Buffer]) -> None:
        """Keep items until they are sent."""
        at = 0
        for i, result in enumerate(items.results):
            end = at + (items.buffers[i] if items.buffers else 0)
            reply = actor_pb2.Reply(
                seq=items.seq, codec=items.codec, result=result, streamed=True, items=items.first + i
            )
            reply.buffers.extend(bytes(b) for b in buffers[at:end])
            self._replies.append(reply)
            at = end

    def answer(self, reply: actor_pb2.Reply, buffers: Sequence[Buffer], later: bool) -> None:  # noqa: ARG002
        """Hand the last reply over."""
        if buffers:
            reply.buffers.extend(bytes(b) for b in buffers)
        self._last = reply
        self._notify()

    def _notify(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._changed.set)

    async def replies(self) -> AsyncIterator[actor_pb2.Reply]:
        """Yield what is to be sent. What was sent is acknowledged."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._stream is not None:
                self._stream.hand()
            last = self._last  # before the items, all of which are here by then
            while self._replies:
                reply = self._replies.popleft()
                yield reply
                assert self._stream is not None
                self._stream.ack(reply.items)
            if last is not None:
                if not last.streamed or last.HasField("error"):
                    yield last
                return


class _Servicer:
    def __init__(self, core: Core) -> None:
        self._core = core

    async def Invoke(  # noqa: N802
        self, received: tuple[actor_pb2.Call, Sequence[memoryview]], context: Any
    ) -> actor_pb2.Reply:
        received[0].ClearField("stream")
        waiter = _Waiter()
        call = self._call(received, context, waiter)
        del received
        limit = min(self._core.limits.max_message_bytes, MAX_FRAME)
        self._core.route(call)
        try:
            return _bounded(await waiter.future, limit)
        except asyncio.CancelledError:
            call.cancel_if_routed()
            raise

    async def InvokeStream(  # noqa: N802
        self, received: tuple[actor_pb2.Call, Sequence[memoryview]], context: Any
    ) -> AsyncIterator[actor_pb2.Reply]:
        waiter = _StreamWaiter()
        call = self._call(received, context, waiter)
        del received
        self._core.route(call)
        try:
            async for reply in waiter.replies():
                yield reply
        finally:
            call.cancel_if_routed()  # unless it has ended

    def _call(
        self, received: tuple[actor_pb2.Call, Sequence[memoryview]], context: Any, to: Answerer
    ) -> ServerCall:
        request, buffers = received
        left = context.time_remaining()
        if left is not None:
            nanoseconds = max(1, int(left * 1e9))
            request.timeout_ns = min(request.timeout_ns or nanoseconds, nanoseconds)
        call = ServerCall(request, buffers, None, to)
        limits = self._core.limits
        call.pickles = limits.secure and (limits.allow_pickle or limits.created)
        limit = min(limits.max_message_bytes, MAX_FRAME)
        call.memory = limit // 2  # grpcio holds the message too
        call.item_limit = limit
        return call

    async def ListMethods(  # noqa: N802
        self, request: actor_pb2.ListMethodsRequest, context: Any
    ) -> actor_pb2.ListMethodsResponse:
        response = self._core.list_methods(request)
        if response.HasField("error"):
            await context.abort(grpc.StatusCode.NOT_FOUND, str(of_wire(response.error)))
        return response

    async def ListActors(  # noqa: N802
        self,
        request: actor_pb2.ListActorsRequest,
        context: Any,  # noqa: ARG002
    ) -> actor_pb2.ListActorsResponse:
        return self._core.list_actors(request)


def _bounded(reply: actor_pb2.Reply, limit: int) -> actor_pb2.Reply:
    """Return the reply, or an error instead of a result that is larger than one message may be."""
    size = len(reply.result) + sum(len(b) for b in reply.buffers)
    if size <= limit:
        return reply
    problem = TooLargeError(result_too_large(size, limit), ran=True)
    return error_reply(reply.seq, reply.incarnation, problem)[0]


class GrpcSide:
    """The server of grpcio behind a server of actors."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._loop = EventLoop("fray-actor-grpc")
        self._folder = tempfile.mkdtemp(prefix="fray-actor-")  # no other user may read it
        self._path = str(Path(self._folder) / "grpc")
        self._server: Any = None
        try:
            self._loop.run(self._start())
        except BaseException:
            self.stop(0)
            raise

    async def _start(self) -> None:
        limit = min(self._core.limits.max_message_bytes, MAX_FRAME)
        options = [
            # grpcio holds what it receives three times at once.
            ("grpc.max_receive_message_length", limit // 2 + _SLACK),
            ("grpc.max_send_message_length", limit + _SLACK),
        ]
        self._server = grpc.aio.server(options=options)
        self._server.add_generic_rpc_handlers((_handlers(_Servicer(self._core), limit // 4),))
        self._server.add_insecure_port(f"unix:{self._path}")
        await _add_health(self._server)
        _add_reflection(self._server)
        await self._server.start()

    def serve(self, stream: Stream, begun: bytes) -> None:
        """Pass a connection on, of which some was received, until it ends."""
        inner = socket.socket(socket.AF_UNIX)
        try:
            inner.connect(self._path)
            inner.sendall(begun)
            back = threading.Thread(
                target=_back, args=(inner, stream), name="fray-actor-grpc-back", daemon=True
            )
            back.start()
            with contextlib.suppress(OSError):
                part = memoryview(bytearray(64 << 10))
                while got := stream.recv_into(part):
                    inner.sendall(part[:got])
            with contextlib.suppress(OSError):
                inner.shutdown(socket.SHUT_RDWR)
            stream.close()
            back.join()
        finally:
            inner.close()

    def stop(self, seconds: float) -> None:
        """End it."""
        if self._server is not None:
            with contextlib.suppress(Exception):
                self._loop.run(self._server.stop(seconds), seconds + _SLOW)
        self._loop.stop(1)
        shutil.rmtree(self._folder, ignore_errors=True)


def _handlers(servicer: _Servicer, memory: int) -> Any:
    """Return what serves the methods. A message takes at most so many bytes of memory beside its payload."""

    def handler(serve: Any, decode: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(
            serve, request_deserializer=decode, response_serializer=lambda reply: reply.SerializeToString()
        )

    methods = {
        "Invoke": handler(servicer.Invoke, _large.bounded_call(memory)),
        "InvokeStream": grpc.unary_stream_rpc_method_handler(
            servicer.InvokeStream,
            request_deserializer=_large.bounded_call(memory),
            response_serializer=lambda reply: reply.SerializeToString(),
        ),
        "ListMethods": handler(servicer.ListMethods, _large.bounded(actor_pb2.ListMethodsRequest, memory)),
        "ListActors": handler(servicer.ListActors, _large.bounded(actor_pb2.ListActorsRequest, memory)),
    }
    return grpc.method_handlers_generic_handler(_SERVICE, methods)


def _back(inner: socket.socket, stream: Stream) -> None:
    """Pass on what the inner server sends."""
    with contextlib.suppress(OSError):
        while data := inner.recv(64 << 10):
            send_all(stream, data)
    stream.close()


async def _add_health(server: Any) -> None:
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    for name in ("", _SERVICE):
        await servicer.set(name, health_pb2.HealthCheckResponse.SERVING)


def _add_reflection(server: Any) -> None:
    names = [_SERVICE, reflection.SERVICE_NAME, health.SERVICE_NAME]
    reflection.enable_server_reflection(names, server)
