"""The server's side of one connection that carries frames.

What a call does is left to `_core`, and which bytes are frames to `_listener`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from fray._pb import actor_pb2
from fray.rpc import _proof, _wire
from fray.rpc._call import ServerCall
from fray.rpc._core import MAX_PENDING, Core
from fray.rpc._ledger import Caller, Verdict
from fray.rpc._reader import FrameReader
from fray.rpc._receive_turn import TICK, ReceiveTurn
from fray.rpc._reply import error_reply
from fray.rpc._wire import Buffer, MalformedFrameError, OversizeError, PlainStream, SilentError
from fray.rpc._writer import FrameWriter, Outgoing
from fray.rpc.errors import (
    ActorError,
    DeniedError,
    MalformedError,
    MaybeExecutedError,
    StoppingError,
    TooLargeError,
    VersionError,
)

if TYPE_CHECKING:
    from fray.rpc._call import SharedConnection
    from fray.rpc._wire import Stream

_MAX_PEER: Final = 64  # characters of a caller's name


class _RejectedError(Exception):
    """The connection ends with a Close that has the reason."""

    def __init__(self, error: ActorError) -> None:
        super().__init__(error)
        self.error = error


class Session:
    """Receives calls on the thread that `serve` is called on, and sends the replies from any."""

    def __init__(self, core: Core, stream: Stream, reader: FrameReader, secure: bool) -> None:
        self._core, self._stream, self._reader, self._secure = core, stream, reader, secure
        self._writer = FrameWriter(stream, "fray-actor-send")
        self._calls: dict[int, ServerCall] = {}  # that are not answered, by seq
        self._limit = core.limits.max_message_bytes  # of what is sent
        self._caller: Caller[ServerCall] | None = None
        self._turn = ReceiveTurn()
        self.takes_streams = False
        self.left = False
        self.wake = core.sender.put
        self._pickles = False  # pickled arguments are read
        self._returns_pickles = False  # pickle is the fallback for results

    def serve(self) -> None:
        """Serve until the connection ends."""
        try:
            self._serve()
        except (EOFError, OSError, SilentError):
            pass  # calls that are here run; a client that reconnects gets their replies
        except MalformedFrameError as err:
            self._reject(MalformedError(str(err)))
        except OversizeError as err:
            self._reject(MalformedError(f"the head of a frame is {_wire.mebibytes(err.size)}"))
        except _RejectedError as err:
            self._reject(err.error)
        finally:
            self._writer.fail(OSError("the connection is closed"))
            self._writer.join()
            self.left = True
            if self._caller is not None:
                for call in self._core.ledger.streams_to(self._caller, self):
                    self._core.expire(call, self)
                self._core.ledger.close(self._caller)
            self._stream.release()

    def stop(self, seconds: float) -> None:
        """Close once the server has drained, so that the client closes, too.

        It means that calls without an answer did not run, so nothing may run any more.
        """
        stopping = StoppingError("the server is shutting down")
        self._report(_wire.CLOSE, actor_pb2.Close(error=stopping.to_wire()))
        self._writer.finish(seconds)

    def close(self) -> None:
        """End the connection at once."""
        self._writer.fail(OSError("the server is shut down"))

    def answer(self, reply: actor_pb2.Reply, buffers: Sequence[Buffer], later: bool) -> None:
        """Send a reply; `later`: another thread may, as this one has more to do."""
        body = 0
        if buffers:
            sizes = [len(b) for b in buffers]
            reply.ClearField("buffer_sizes")
            reply.buffer_sizes.extend(sizes)
            body = sum(sizes)
        head = _wire.frame_bytes(_wire.REPLY, reply, body)
        if len(head) - _wire.PREFIX_SIZE + body > self._limit:
            head, buffers, body = self._too_large(reply, len(head) - _wire.PREFIX_SIZE + body), (), 0
        self._calls.pop(reply.seq, None)
        self._writer.send(Outgoing(head, buffers, body), later)

    def items(self, items: actor_pb2.Items, buffers: Sequence[Buffer]) -> None:
        """Send items of a stream, of which there are only as many as the caller takes."""
        self._turn.recall()  # the thread that runs the method receives nothing, and acknowledgements come
        body = sum(map(len, buffers)) if buffers else 0
        self._writer.send(Outgoing(_wire.frame_bytes(_wire.ITEMS, items, body), buffers, body))

    def _too_large(self, reply: actor_pb2.Reply, size: int) -> bytes:
        call = self._calls.get(reply.seq)
        problem = TooLargeError(_wire.result_too_large(size, self._limit), ran=True)
        if call is not None:
            problem.at(call.actor.name, call.method.name)
        short, _ = error_reply(reply.seq, reply.incarnation, problem)
        return _wire.frame_bytes(_wire.REPLY, short, 0)

    def _serve(self) -> None:
        self._handshake()
        turn, writer = self._turn, self._writer
        turn.begin()
        while True:
            found = self._receive()
            if found is None:
                continue
            frame, buffers = found
            if not frame.HasField("call"):
                self._other(frame)
            elif self._calls or self._reader.waiting or not turn.lendable:
                self._take(frame.call, buffers)
            else:
                self._take_lending(frame.call, buffers)
            if writer.full:
                self._wait_for_reader()

    def _take_lending(self, message: actor_pb2.Call, buffers: Sequence[memoryview]) -> None:
        """Begin a call, and let the thread that runs it receive the next if that saves time."""
        borrowed = False
        self._turn.lend()
        try:
            borrowed = self._take(message, buffers, self)
        finally:
            self._turn.take_back(lambda: not borrowed)

    def _receive(self) -> tuple[actor_pb2.Frame, Sequence[memoryview]] | None:
        """Receive a frame; None: it was too large, which was answered."""
        try:
            return self._reader.receive()
        except OversizeError as err:
            if err.frame is None or not err.frame.HasField("call"):
                raise
            self._oversized(err.frame.call, err)
            return None

    def receive_one(self, wake: int) -> bool:
        """Receive one frame on the thread that ran the last call."""
        turn = self._turn
        if not turn.borrow():
            return False
        try:
            found = self._receive() if not self._writer.full and self._reader.comes(TICK, wake) else None
            if found is None:
                if self._reader.large:
                    turn.pause()
                return False
            frame, buffers = found
            if frame.HasField("call"):
                return self._take(frame.call, buffers, self)
            self._other(frame)
        except Exception as err:
            turn.failure = err
        finally:
            turn.give_back()
        return False

    def give_back(self, shared: bool) -> None:
        """Receive on the connection's own thread again."""
        if shared:
            self._turn.pause()
        self._turn.recall()

    def _handshake(self) -> None:
        frame, _ = self._reader.receive()
        if not frame.HasField("handshake"):
            raise MalformedFrameError("the first frame is not a Handshake")
        handshake, limits = frame.handshake, self._core.limits
        if handshake.version != _wire.VERSION:
            raise _RejectedError(VersionError(_wire.version_problem(_wire.VERSION, handshake.version)))
        if handshake.namespace and limits.namespace and handshake.namespace != limits.namespace:
            raise _RejectedError(DeniedError("peers of another namespace are not served"))
        if not 0 < len(handshake.peer) <= _MAX_PEER:
            raise MalformedFrameError("Handshake.peer is empty or too long")
        if handshake.max_message_bytes:
            self._limit = min(self._limit, handshake.max_message_bytes)
        self.takes_streams = handshake.streams
        self._caller = self._core.ledger.open(handshake.peer)
        proven = self._proven(handshake.proof)
        own = actor_pb2.Handshake(
            version=_wire.VERSION,
            peer=limits.peer,
            namespace=limits.namespace,
            max_message_bytes=limits.max_message_bytes,
            max_pending=MAX_PENDING,
            language="python",
            pickle=limits.allow_pickle and proven,
            pickle_created=limits.created and proven,
            proof=_proof.answer(limits.secret, handshake.proof) if proven and not self._secure else b"",
        )
        self._pickles = own.pickle or own.pickle_created
        self._returns_pickles = _proof.agreed(own, handshake)
        self._report(_wire.HANDSHAKE, own)
        self._reader.accepted(limits.max_message_bytes, limits.keepalive, limits.patience, self._ping)

    def _proven(self, proof: bytes) -> bool:
        """Return whether the client is of this namespace for certain."""
        if self._secure:
            return True
        limits, stream = self._core.limits, self._stream
        if not proof or not isinstance(stream, PlainStream):
            return False
        return _proof.check(limits.secret, proof, stream.addresses(client=False), limits.since)

    def _take(
        self,
        message: actor_pb2.Call,
        buffers: Sequence[memoryview],
        connection: SharedConnection | None = None,
    ) -> bool:
        """Begin a call; return whether the thread that runs it receives on `connection` afterwards."""
        caller = self._caller
        assert caller is not None
        call = ServerCall(message, buffers, caller, self)
        call.connection = connection
        call.pickles, call.returns_pickles = self._pickles, self._returns_pickles
        call.memory = self._core.limits.max_message_bytes
        call.item_limit = self._limit
        seq = call.seq
        if not seq:
            call.connection = None
            return self._core.route(call)
        with caller.turn:  # nothing in here waits for a peer
            verdict, known = self._core.ledger.begin(caller, call, message.acked)
            if verdict is Verdict.NEW:
                busy = len(self._calls) >= MAX_PENDING
                self._calls[seq] = call
                borrowed = self._core.route(call, busy)
                if not borrowed:
                    call.connection = None
                return borrowed
        self._again(verdict, known, message.stream)
        return False

    def _again(self, verdict: Verdict, known: ServerCall, asked: actor_pb2.StreamRequest) -> None:
        """Answer a call that was sent before."""
        if verdict is Verdict.OLD:
            return
        if verdict is Verdict.AWAIT:
            self._calls[known.seq] = known
        if known.stream is not None and verdict is not Verdict.LOST:
            known.stream.attach(self, asked)
        elif verdict is Verdict.AWAIT:
            pass
        elif known.reply is not None:
            self.answer(known.reply[0], known.reply[1], later=False)
        else:
            lost = MaybeExecutedError(
                "the connection broke after the call was sent: it may have run", ran=True
            )
            message = known.message
            if message is not None:
                lost.at(message.actor, message.method)
            self.answer(*error_reply(known.seq, "", lost), later=False)

    def _oversized(self, message: actor_pb2.Call, err: OversizeError) -> None:
        problem = TooLargeError(_wire.arguments_too_large(err.size, err.limit)).at(
            message.actor, message.method
        )
        self.answer(*error_reply(message.seq, "", problem), later=False)

    def _other(self, frame: actor_pb2.Frame) -> None:
        """Take a frame that is no call. Raises EOFError if it was the last."""
        kind = frame.WhichOneof("kind")
        if kind == "ping":
            if frame.ping.acked and self._caller is not None:
                self._core.ledger.acknowledge(self._caller, frame.ping.acked)
            self._report(_wire.PONG, actor_pb2.Pong(id=frame.ping.id))
        elif kind == "cancel":
            call = self._calls.get(frame.cancel.seq)
            if call is not None:
                call.cancel()
        elif kind == "stream_ack":
            call = self._calls.get(frame.stream_ack.seq)
            if call is not None and call.stream is not None:
                call.stream.ack(frame.stream_ack.taken)
        elif kind == "list_methods":
            self._report(_wire.METHODS, self._core.list_methods(frame.list_methods))
        elif kind == "list_actors":
            self._report(_wire.ACTORS, self._core.list_actors(frame.list_actors))
        elif kind == "close":
            raise EOFError
        elif kind == "handshake":
            raise MalformedFrameError("a second Handshake")
        # Others are of a newer client; they change nothing.

    def _wait_for_reader(self) -> None:
        """Take no more calls while the client does not read its replies."""
        limits = self._core.limits
        if not self._writer.wait_for_room(limits.keepalive + limits.patience):
            raise SilentError

    def _ping(self) -> None:
        self._report(_wire.PING, actor_pb2.Ping(id=1))

    def _report(self, field: int, message: Message) -> None:
        self._writer.send(Outgoing(_wire.frame_bytes(field, message, 0)))

    def _reject(self, err: ActorError) -> None:
        self._report(_wire.CLOSE, actor_pb2.Close(error=err.to_wire()))
        # What is unread would make closing throw away what was sent.
        self._writer.finish(1)
        self._stream.set_patience(1)
        with contextlib.suppress(EOFError, OSError, SilentError):
            self._reader.discard(1 << 20)
