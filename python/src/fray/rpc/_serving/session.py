"""The server's side of one connection that carries frames.

What a call does is left to `_serving.core`, and which bytes are frames to `_serving.listener`.
"""

from __future__ import annotations

import contextlib
from _thread import start_new_thread
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from google.protobuf.message import Message

from fray._pb import actor_pb2
from fray.rpc._serving.call import ServerCall
from fray.rpc._serving.core import MAX_PENDING, Core
from fray.rpc._serving.delivery import Delivery
from fray.rpc._serving.ledger import Caller, Verdict
from fray.rpc._serving.reply import Reply, error_reply, payload_size
from fray.rpc._transport import proof as _proof
from fray.rpc._transport import shared as _shared
from fray.rpc._transport import transfer as _transfer
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.reader import FrameReader
from fray.rpc._transport.receive_turn import TICK, ReceiveTurn
from fray.rpc._transport.wire import Buffer, MalformedFrameError, OversizeError, PlainStream, SilentError
from fray.rpc._transport.writer import FrameWriter, Outgoing
from fray.rpc.errors import (
    ActorError,
    BusyError,
    CancelledError,
    DeniedError,
    MalformedError,
    MaybeExecutedError,
    StoppingError,
    TooLargeError,
    UnavailableError,
    VersionError,
)

if TYPE_CHECKING:
    from fray.rpc._serving.call import SharedConnection
    from fray.rpc._transport.wire import Stream

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
        self._shares = False  # the client may write arguments into memory of this process
        self._delivery = Delivery(self._writer, self, 0, self._report)
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
                self._abandon(self._caller)
                for call in self._core.ledger.streams_to(self._caller, self):
                    self._core.expire(call, self)
                self._core.ledger.close(self._caller)
            self._stream.release()

    def stop(self, seconds: float) -> None:
        """Close once the server has drained, so that the client closes, too.

        It means that calls without an answer did not run, so nothing may run any more.
        """
        if self._delivery:  # calls whose results are on their way did run
            self.close()
            return
        stopping = StoppingError("the server is shutting down")
        self._report(_wire.CLOSE, actor_pb2.Close(error=stopping.to_wire()))
        self._writer.finish(seconds)

    def close(self) -> None:
        """End the connection at once."""
        self._writer.fail(OSError("the server is shut down"))

    def answer(self, reply: actor_pb2.Reply, buffers: Sequence[Buffer], later: bool) -> None:
        """Send a reply; `later`: this thread is about to run another call."""
        body, whole = 0, payload_size((reply, buffers))
        if self._delivery.takes(reply.seq, whole):
            if whole > self._delivery.limit:
                reply, buffers = self._too_large(reply, whole, self._delivery.limit)
            else:
                self._calls.pop(reply.seq, None)
                self._delivery.announce(reply, buffers, whole)
                return
        if buffers:
            sizes = [len(b) for b in buffers]
            reply.ClearField("buffer_sizes")
            reply.buffer_sizes.extend(sizes)
            body = sum(sizes)
        head = _wire.frame_bytes(_wire.REPLY, reply, body)
        if len(head) - _wire.PREFIX_SIZE + body > self._limit:
            reply, buffers = self._too_large(reply, len(head) - _wire.PREFIX_SIZE + body, self._limit)
            head, body = _wire.frame_bytes(_wire.REPLY, reply, 0), 0
        self._calls.pop(reply.seq, None)
        if later:
            self._writer.send_now(Outgoing(head, buffers, body))  # the next call may end this process
        else:
            self._writer.send(Outgoing(head, buffers, body))

    def items(self, items: actor_pb2.Items, buffers: Sequence[Buffer]) -> None:
        """Send items of a stream, of which there are only as many as the caller takes."""
        self._turn.recall()  # the thread that runs the method receives nothing, and acknowledgements come
        body = sum(map(len, buffers)) if buffers else 0
        self._writer.send(Outgoing(_wire.frame_bytes(_wire.ITEMS, items, body), buffers, body))

    def _too_large(self, reply: actor_pb2.Reply, size: int, limit: int) -> Reply:
        call = self._calls.get(reply.seq)
        problem = TooLargeError(_wire.result_too_large(size, limit), ran=True)
        if call is not None:
            problem.at(call.actor.name, call.method.name)
        return error_reply(reply.seq, reply.incarnation, problem)

    @property
    def takes_parts(self) -> bool:
        """Whether the client takes large results in parts."""
        return bool(self._delivery.limit)

    def lend(self, seq: int, evicted: Callable[[], object]) -> Reply | None:
        """Return a result that is sent in parts now, see Ledger."""
        assert self._caller is not None
        return self._core.ledger.lend(self._caller, seq, evicted)

    def free(self, seq: int) -> None:
        """Forget a result that the client has."""
        assert self._caller is not None
        self._core.ledger.free(self._caller, seq)

    def sending(self, change: int) -> None:
        """Note how many more results are on their way."""
        self._core.sending(change)

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
                self._other(frame, buffers)
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
            if frame.HasField("part"):  # this thread's queue may be that of what begins
                start_new_thread(self._other, (frame, buffers))
            else:
                self._other(frame, buffers)
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
        self._delivery.limit = min(limits.max_message_bytes, handshake.max_transfer_bytes)
        self.takes_streams = handshake.streams
        self._caller = self._core.ledger.open(handshake.peer)
        proven = self._proven(handshake.proof)
        own = actor_pb2.Handshake(
            version=_wire.VERSION,
            peer=limits.peer,
            namespace=limits.namespace,
            max_message_bytes=min(limits.max_message_bytes, _wire.MAX_FRAME),
            max_transfer_bytes=limits.max_message_bytes,
            shared_memory=self._stream.near and _shared.AVAILABLE,
            max_pending=MAX_PENDING,
            language="python",
            pickle=limits.allow_pickle and proven,
            pickle_created=limits.created and proven,
            proof=_proof.answer(limits.secret, handshake.proof) if proven and not self._secure else b"",
        )
        self._shares = handshake.shared_memory and own.shared_memory
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
        if message.transfer_bytes:
            connection = None
            if self._over(message):
                return False
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
                if call.complete and call.former is None:
                    return borrowed
        if verdict is Verdict.NEW:
            self._expect(call)
            return borrowed
        self._again(verdict, known, message.stream)
        return False

    def _over(self, message: actor_pb2.Call) -> bool:
        """Reject a call whose arguments are too large to come in parts; return whether they are."""
        size, limit = message.transfer_bytes, self._core.limits.max_message_bytes
        _transfer.check(size, message.args_bytes, message.buffer_sizes)
        if not message.seq or message.args:
            raise MalformedFrameError("a call in parts has no number, or arguments of its own")
        if size > limit:
            self._oversized(message, OversizeError(size, limit, None))
        return size > limit

    def _expect(self, call: ServerCall) -> None:
        """Ask for the arguments of a call once there is memory for them."""
        former, call.former = call.former, None
        if isinstance(former, ServerCall):
            former.drop(CancelledError("the call was sent again"))
        message = call.message
        if message is None or call.complete:
            return
        call.session = self
        size = message.transfer_bytes
        room = self._core.room.reserve(size, lambda: self._accept(call, size))
        call.room = room
        if call.over:
            room.release()

    def _accept(self, call: ServerCall, size: int) -> None:
        seq, seconds = call.seq, self._core.limits.stall

        def stalled() -> None:
            call.drop(BusyError(f"no part of the arguments came for {seconds:g} s"))

        try:
            inbound = _transfer.Inbound(size, seconds, stalled, self._shares)
        except OSError as err:
            call.drop(BusyError(f"there is no memory for the arguments: {err}"))
            return
        self._reader.expect(seq, inbound)
        if call.over:
            self._reader.forget(seq)
        else:
            self._report(_wire.ACCEPT, inbound.accept(seq))

    def _arrived(self, seq: int, payload: memoryview) -> None:
        """Begin a call all of whose arguments are here, and what waited behind it."""
        call = self._calls.get(seq)
        message = call.message if call is not None else None
        if call is None or message is None or call.complete or call.session is not self:
            return
        call.buffers = _transfer.split(payload, message.args_bytes, message.buffer_sizes)
        assert self._caller is not None
        with self._caller.turn:
            call.complete = True
        self._advance(self._caller)

    def _advance(self, caller: Caller[ServerCall]) -> None:
        """Bring the calls that need not wait any more to their actors."""
        with caller.turn:
            for call in caller.arguments.release():
                if not call.over:
                    self._core.put(call)

    def dropped(self, call: ServerCall) -> None:
        """Receive no arguments of a call that was answered before they had come."""
        self._reader.forget(call.seq)
        if call.caller is not None:
            start_new_thread(self._advance, (call.caller,))  # its turn may be held here

    def _abandon(self, caller: Caller[ServerCall]) -> None:
        """End the calls whose arguments do not come any more; those behind them are sent again, too."""
        self._delivery.end()
        for call in self._cut_off(caller):
            call.reject(UnavailableError("the connection broke before all of the arguments had come"))
        self._advance(caller)

    def _cut_off(self, caller: Caller[ServerCall]) -> list[ServerCall]:
        """Have those calls never run, in one turn: what is sent again after it is new."""
        with caller.turn:
            broken = {call for call in self._calls.values() if not call.complete and call.session is self}
            behind = [call for call in caller.arguments.behind(broken) if call.to is self]
            return [call for call in behind if call.withdraw()]

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

    def _other(self, frame: actor_pb2.Frame, buffers: Sequence[memoryview]) -> None:
        """Take a frame that is no call. Raises EOFError if it was the last."""
        kind = frame.WhichOneof("kind")
        if kind == "ping":
            if frame.ping.acked and self._caller is not None:
                self._core.ledger.acknowledge(self._caller, frame.ping.acked)
            self._report(_wire.PONG, actor_pb2.Pong(id=frame.ping.id))
        elif kind == "part":
            seq, size = frame.part.seq, frame.part.written
            payload = buffers[0] if buffers else self._reader.written(seq, size) if size else None
            if payload is not None:
                self._arrived(seq, payload)
        elif kind == "accept":
            self._delivery.accepted(frame.accept)
        elif kind == "release":
            self._delivery.released(frame.release.seq)
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
