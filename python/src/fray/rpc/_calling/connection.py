"""The client's side of one connection to a server of actors.

A connection carries calls in the order in which they are handed to it, and answers as they come. It knows
nothing of names, retries, codecs or futures: it reports what became of each call, so that a caller that sends
it again knows whether it may have run. Start with Connection.open.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from google.protobuf.message import Message

from fray._locks import Worker
from fray._pb import actor_pb2
from fray.rpc._calling.dial import check_handshake, describe, dial, receive_handshake
from fray.rpc._calling.outcome import Answer, Sent
from fray.rpc._calling.pending import PendingCalls
from fray.rpc._calling.questions import Questions
from fray.rpc._calling.results import Results
from fray.rpc._transport import memory as _memory
from fray.rpc._transport import proof as _proof
from fray.rpc._transport import shared as _shared
from fray.rpc._transport import transfer as _transfer
from fray.rpc._transport import wire as _wire
from fray.rpc._transport.reader import FrameReader
from fray.rpc._transport.receive_turn import TICK, ReceiveTurn
from fray.rpc._transport.settings import Settings
from fray.rpc._transport.wire import Buffer, PlainStream, Stream
from fray.rpc._transport.writer import FrameWriter, Outgoing
from fray.rpc.errors import (
    ActorError,
    CancelledError,
    DeadlineError,
    MalformedError,
    TooLargeError,
    UnavailableError,
    of_wire,
)

_MAX_PENDING = 10_000  # of a server that does not report it
_log = logging.getLogger("fray.rpc")


class _EndError(Exception):
    """The server closes the connection."""


class _CallInParts:
    """A call whose arguments are sent in parts."""

    __slots__ = ("asked", "pieces", "whole")

    def __init__(self, pieces: Sequence[Buffer], whole: Outgoing) -> None:
        self.pieces, self.whole = pieces, whole
        self.asked = False  # the server did, or it need not any more


class Connection:
    """Calls on their way to one server. All methods may be used from any thread."""

    def __init__(self, address: str, settings: Settings, stream: Stream) -> None:
        """Use `open`."""
        self.address = address
        """host:port"""
        self.peer = actor_pb2.Handshake()
        """The server's Handshake; `peer.peer` is another one for each process at the address."""
        self.stopping = False
        """The server drains: it answers the calls that it has, and rejects new ones."""
        self.silent = False
        """It ended as the server was silent for too long."""
        self.pickles = False
        """Pickle is the fallback: the server has proven to be of this namespace, and both sides allow it."""
        self._settings, self._stream = settings, stream
        self._reader = FrameReader(stream, settings.connect_timeout)
        self._turn = ReceiveTurn()
        self._writer = FrameWriter(stream, f"fray-send-{address}")
        self._pending = PendingCalls(_MAX_PENDING)
        self._limit = settings.max_message_bytes
        self._in_parts: dict[int, _CallInParts] = {}  # by seq
        self._results = Results(
            self._reader,
            _memory.of_process(settings.transfer_memory),
            settings.keepalive + settings.patience,
            self._report,
            self._stalled,
        )
        self._closed = False
        self._reason: Exception | None = None
        self._drained = False  # no reply came after the server reported that it stops
        self._questions = Questions()
        self._acked = 0

    @classmethod
    def open(cls, address: str, settings: Settings) -> Connection:
        """Connect to host:port and shake hands.

        Raises:
            UnavailableError: no server answers there, or not in time.
            VersionError: the server speaks another version.
            DeniedError: it is of another namespace, or one of the two wants TLS and the other none.
            MalformedError: the process that listens there speaks another protocol.
        """
        connection = cls(address, settings, dial(address, settings))
        try:
            connection._handshake()
            Worker(connection._read, f"fray-receive-{address}").start()
        except BaseException:
            connection._writer.fail(OSError("the connection is closed"))
            connection._writer.join()
            connection._stream.release()
            raise
        return connection

    def call(
        self,
        call: actor_pb2.Call,
        buffers: Sequence[Buffer],
        done: Callable[[Answer], None],
        later: bool = False,
    ) -> Sent:
        """Send a call; `done` is called exactly once, on the thread that receives, so it must be quick.

        Calls are sent in the order of calls of this method, which must be that of their seq: hold a lock
        around giving the number and this. `buffer_sizes` is filled in here. It blocks while the server's
        max_pending calls are unanswered or much waits to be written, so never use it from `done`; and `done`
        must not wait for a lock that is held around it for anything but this (the slot is given back before
        `done` is called).

        Args:
            call: With seq, which no unanswered call of this connection has. It must not be changed
                afterwards.
            buffers: Those that its args refer to.
            done: Gets the answer. If it raises, that is logged.
            later: Leave the writing to the writer's thread, so that many calls go out together, or to
                `flush`. False writes at once, with all that waits.

        Raises:
            TooLargeError: over the limit of either side; nothing was sent, `done` is not called.
            UnavailableError: the connection is closed already; nothing was sent, `done` is not called.
        """
        outgoing = sent = self._pack(call, buffers)
        if self._pending.full or self._writer.full:
            self._wait_for_room()
        if self._turn.lent and self._stream.ended():
            self._turn.recall()
            self.close(self._lost(EOFError()))
            raise self._unavailable()
        seq = call.seq
        pending = self._pending
        if not outgoing.size:
            outgoing = self._announce(call, outgoing)
        pending.add(seq, (sent, done))
        if self._closed and pending.withdraw(seq):
            self._in_parts.pop(seq, None)
            raise self._unavailable()
        self._writer.send(outgoing, later)
        if later or outgoing is not sent:
            self._turn.recall()
        return sent

    def attend(self, sent: Sent, seconds: float) -> None:
        """Receive on this thread, which waits for a call, unless another thread does.

        It ends when the call is answered, else after `seconds` or a moment: then another thread receives.
        """
        turn = self._turn
        if not turn.lendable or turn.mine:  # in a handler of a signal, see `_transport.amid`
            return
        if not turn.borrow_for(lambda: self._receive_for(sent, seconds)):
            sent.attended = True
        elif self._pending or turn.failure is not None:
            turn.recall()

    def _receive_for(self, sent: Sent, seconds: float) -> None:
        turn, reader = self._turn, self._reader
        try:
            while not sent.answered and reader.comes(min(seconds, TICK)) and turn.failure is None:
                self._next()
            if reader.large:
                turn.pause()
        except Exception as err:
            turn.failure = err
        except BaseException:  # out of a handler of a signal
            if not reader.idle:
                turn.failure = OSError("receiving was interrupted")
            raise
        finally:
            reader.idle = False

    def flush(self) -> None:
        """Write what was left for later, now: the caller is about to wait for an answer."""
        self._writer.flush()

    def cancel(self, seq: int) -> None:
        """Ask the server not to begin a call, or to end it. The call is answered all the same."""
        parts = self._in_parts.get(seq)
        if parts is not None:
            parts.asked = True
            self._writer.cut(seq)
        if self._results and self._results.drop(seq) is not None:
            late = CancelledError("the call was cancelled before its result had come", ran=True)
            self._answer_with(late, seq)
        self._report(_wire.CANCEL, actor_pb2.Cancel(seq=seq))

    def acknowledge(self, seq: int, taken: int) -> None:
        """Report how many items of a stream were taken."""
        self._report(_wire.STREAM_ACK, actor_pb2.StreamAck(seq=seq, taken=taken))

    def list_methods(self, actor: str, timeout: float | None = None) -> actor_pb2.ListMethodsResponse:
        """Return what can be called of an actor.

        Raises:
            UnknownActorError: there is none of that name.
            DeadlineError: there was no answer within `timeout` seconds.
            UnavailableError: the connection ended before the answer.
        """
        number = self._questions.new_id()
        request = actor_pb2.ListMethodsRequest(actor=actor, id=number)
        response = self._ask(number, _wire.LIST_METHODS, request, timeout).methods
        if response.HasField("error"):
            raise of_wire(response.error)
        return response

    def list_actors(self, prefix: str = "", timeout: float | None = None) -> actor_pb2.ListActorsResponse:
        """Return the actors whose names begin so. Raises as `list_methods` does."""
        number = self._questions.new_id()
        request = actor_pb2.ListActorsRequest(prefix=prefix, id=number)
        return self._ask(number, _wire.LIST_ACTORS, request, timeout).actors

    def close(self, reason: Exception | None = None) -> None:
        """Close; calls that are not answered are lost, for `reason`. Closing again changes nothing."""
        self._reason = self._reason or reason
        self._writer.fail(OSError("the connection is closed"))

    @property
    def closed(self) -> bool:
        """Whether the connection has ended, from either side."""
        return self._closed or self._writer.failure is not None

    @property
    def amid(self) -> bool:
        """Whether a thread is writing, or this one is receiving.

        In a handler of a signal, whose thread that is, nothing is sent or received here before it returns.
        """
        return self._writer.busy or self._turn.mine

    @property
    def pending(self) -> int:
        """The calls that are not answered."""
        return len(self._pending)

    def acked(self, upto: int) -> None:
        """Note that replies up to this seq are not needed any more, which the next ping reports."""
        self._acked = upto

    def _pack(self, call: actor_pb2.Call, buffers: Sequence[Buffer]) -> Outgoing:
        body = 0
        if buffers:
            buffers = [b if isinstance(b, bytes) else memoryview(b).cast("B") for b in buffers]
            call.ClearField("buffer_sizes")
            call.buffer_sizes.extend(len(b) for b in buffers)
            body = sum(call.buffer_sizes)
        limit = min(self._settings.max_message_bytes, self.peer.max_transfer_bytes)
        most = max(limit, self._limit)
        if body > max(most, _wire.MAX_FRAME):
            raise self._arguments_too_large(call, body, most)
        outgoing = Outgoing(_wire.frame_bytes(_wire.CALL, call, body), buffers, body)
        if limit and outgoing.size > _transfer.PARTS_FROM:
            size = body + len(call.args)
            if size > limit:
                raise self._arguments_too_large(call, size, limit)
            return Outgoing(b"", buffers)  # see _announce
        if outgoing.size - _wire.PREFIX_SIZE > self._limit:
            raise self._arguments_too_large(call, outgoing.size, self._limit)
        return outgoing

    def _arguments_too_large(self, call: actor_pb2.Call, size: int, limit: int) -> TooLargeError:
        message = _wire.arguments_too_large(size, limit)
        return TooLargeError(message, actor=call.actor, method=call.method)

    def _announce(self, call: actor_pb2.Call, whole: Outgoing) -> Outgoing:
        """Return the frame that goes ahead of arguments which are sent in parts when the server asks."""
        args = call.args
        announcement = _transfer.announce_args(call, args, call.buffer_sizes if whole.buffers else ())
        self._in_parts[call.seq] = _CallInParts([args, *whole.buffers], whole)
        whole.buffers = ()
        return Outgoing(_wire.frame_bytes(_wire.CALL, announcement, 0))

    def _stalled(self) -> None:
        self.close(UnavailableError(f"the connection to {self.address} broke: a result got no further"))

    def _wait_for_room(self) -> None:
        self._writer.flush()
        while self._writer.full and not self._closed:
            self._writer.wait_for_room(1)
        self._pending.wait_for_room(lambda: self._closed)

    def _report(self, field: int, message: Message) -> None:
        self._writer.send(Outgoing(_wire.frame_bytes(field, message, 0)))

    def _ask(self, number: int, field: int, message: Message, timeout: float | None) -> actor_pb2.Frame:
        question = self._questions.ask(number)
        if self._closed and self._questions.withdraw(number):
            raise self._unavailable()
        self._report(field, message)
        self._turn.recall()
        if not question.answered.acquire(timeout=-1 if timeout is None else timeout):
            self._questions.withdraw(number)
            raise DeadlineError(f"{self.address} did not answer within {timeout} s")
        if question.answer is None:
            raise self._unavailable()
        return question.answer

    def _handshake(self) -> None:
        settings, stream = self._settings, self._stream
        plain = stream if isinstance(stream, PlainStream) else None
        provable = plain is None or bool(settings.secret)
        handshake = actor_pb2.Handshake(
            version=_wire.VERSION,
            peer=settings.peer,
            namespace=settings.namespace,
            max_message_bytes=min(settings.max_message_bytes, _wire.MAX_FRAME),
            max_transfer_bytes=settings.max_message_bytes,
            shared_memory=self._stream.near and _shared.AVAILABLE,
            language="python",
            pickle=settings.allow_pickle and provable,
            pickle_created=provable,
            proof=_proof_for(plain, settings.secret),
            streams=True,
        )
        self._writer.send(Outgoing(_wire.PREFACE + _wire.frame_bytes(_wire.HANDSHAKE, handshake, 0)))
        self.peer = receive_handshake(self._reader, self.address)
        check_handshake(self.peer, self.address, settings.namespace)
        self._results.shared = handshake.shared_memory and self.peer.shared_memory
        proven = plain is None or _proof.check_answer(settings.secret, handshake.proof, self.peer.proof)
        self.pickles = proven and _proof.agreed(handshake, self.peer)
        if self.peer.max_message_bytes:
            self._limit = min(self._limit, self.peer.max_message_bytes)
        self._pending.limit = self.peer.max_pending or _MAX_PENDING
        self._reader.accepted(settings.max_message_bytes, settings.keepalive, settings.patience, self._ping)

    def _ping(self) -> None:
        self._report(_wire.PING, actor_pb2.Ping(id=self._questions.new_id(), acked=self._acked))

    def _read(self) -> None:
        """Receive until the end: the reader's thread."""
        self._turn.begin()
        try:
            self._receive()
        except _EndError:
            pass
        except Exception as err:
            self._drained &= isinstance(err, EOFError)
            self.silent = isinstance(err, _wire.SilentError)
            self._reason = self._reason or self._lost(err)
        self._closed = True
        self._writer.fail(OSError("the connection is closed"))
        self._writer.join()
        if self._drained:  # what it did not answer it did not run
            for outgoing in self._pending.sent():
                outgoing.may_have_arrived = outgoing.ran
        self._results.end()
        self._lose()
        self._stream.release()

    def _receive(self) -> None:
        turn = self._turn
        while True:
            if self._next(owner=True):
                turn.take_back(lambda: bool(self._pending))

    def _next(self, owner: bool = False) -> bool:
        """Receive a frame. As `owner` of the turn, lend it if a thread waits for the call; return whether.

        Raises:
            _EndError: it was the last.
        """
        try:
            frame, buffers = self._reader.receive()
        except _wire.OversizeError as err:
            if err.frame is None or not err.frame.HasField("reply"):
                raise
            frame, buffers = self._too_large(err.frame.reply, err), ()
        if frame.HasField("reply"):
            reply = frame.reply
            self._drained = False
            if reply.transfer_bytes:
                return self._announced(reply, owner)
            if self._results:
                self._results.drop(reply.seq)
            return self._replied(reply, buffers, owner)
        if not frame.HasField("part"):
            if frame.HasField("items"):
                self._items(frame.items, buffers)
            else:
                self._other(frame)
            return False
        part = frame.part
        written = self._reader.written(part.seq, part.written) if part.written else None
        payload = buffers[0] if buffers else written
        if payload is None:
            return False
        whole = self._results.complete(part.seq, payload)
        return whole is not None and self._replied(*whole, owner)

    def _announced(self, reply: actor_pb2.Reply, owner: bool) -> bool:
        """Ask for a result in parts, if it is wanted."""
        found, limit = self._pending.get(reply.seq), self._settings.max_message_bytes
        if found is None:
            self._results.release(reply.seq)
        elif reply.transfer_bytes > limit:
            self._results.release(reply.seq)
            err = _wire.OversizeError(reply.transfer_bytes, limit, None)
            return self._replied(self._too_large(reply, err).reply, (), owner)
        else:
            found[0].ran = True
            self._results.announced(reply)
        return False

    def _replied(self, reply: actor_pb2.Reply, buffers: Sequence[memoryview], owner: bool) -> bool:
        if self._in_parts and self._in_parts.pop(reply.seq, None) is not None:
            self._writer.cut(reply.seq)
        found = self._pending.take(reply.seq)
        if found is None:
            return False  # one that no caller waits for
        outgoing, done = found
        outgoing.answered = True
        lent = owner and outgoing.attended and not self._pending
        if lent:
            self._turn.lend()  # before the thread that waits sends the next
        self._answer(done, Answer(reply, buffers, None, self.pickles))
        return lent

    def _items(self, items: actor_pb2.Items, buffers: Sequence[memoryview]) -> None:
        """Take items of a stream. Raises MalformedFrameError."""
        self._drained = False
        found = self._pending.get(items.seq)
        if found is not None:
            outgoing, take = found
            take(Answer(None, buffers, None, self.pickles, items))
            outgoing.answered = True  # its caller need not receive by itself any more

    def _other(self, frame: actor_pb2.Frame) -> None:
        """Take a frame that answers no call. Raises _EndError if it was the last."""
        kind = frame.WhichOneof("kind")
        if kind == "ping":
            self._report(_wire.PONG, actor_pb2.Pong(id=frame.ping.id))
        elif kind == "methods" or kind == "actors":
            self._questions.answer(frame.methods.id or frame.actors.id, frame)
        elif kind == "accept":
            parts = self._in_parts.get(frame.accept.seq)
            if parts is not None and not parts.asked:
                parts.asked = True
                self._writer.transfer(_transfer.outbound(frame.accept, parts.pieces), parts.whole)
        elif kind == "close":
            error = of_wire(frame.close.error)
            if error.code == "stopping":
                self.stopping = self._drained = True
                return
            self._reason = self._reason or error
            raise _EndError
        # Others are of a newer server; they change nothing.

    def _too_large(self, reply: actor_pb2.Reply, err: _wire.OversizeError) -> actor_pb2.Frame:
        problem = TooLargeError(_wire.result_too_large(err.size, err.limit), ran=True)
        short = actor_pb2.Reply(seq=reply.seq, incarnation=reply.incarnation, error=problem.to_wire())
        return actor_pb2.Frame(reply=short)

    def _answer_with(self, err: ActorError, seq: int) -> None:
        found = self._pending.take(seq)
        if found is not None:
            found[0].answered = True
            reply = actor_pb2.Reply(seq=seq, error=err.to_wire())
            self._answer(found[1], Answer(reply, (), None))

    def _lose(self) -> None:
        """Answer calls that were not answered, with the reason."""
        self._pending.wake()
        reason = self._reason or UnavailableError(f"the connection to {self.address} was closed")
        self._reason = reason
        for _, done in self._pending.take_all():
            self._answer(done, Answer(None, (), reason))
        self._questions.end()

    def _answer(self, done: Callable[[Answer], None], answer: Answer) -> None:
        try:
            done(answer)
        except Exception:
            _log.exception("what waits for an answer of %s failed", self.address)

    def _lost(self, err: Exception) -> ActorError:
        if isinstance(err, (_wire.MalformedFrameError, _wire.OversizeError)):
            problem = MalformedError(f"{self.address} sent what is no frame: {err}")
            self._report(_wire.CLOSE, actor_pb2.Close(error=problem.to_wire()))
            return problem
        return UnavailableError(f"the connection to {self.address} broke: {describe(err)}")

    def _unavailable(self) -> ActorError:
        return UnavailableError(
            f"the connection to {self.address} is closed: {self._reason or 'by this program'}"
        )


def _proof_for(plain: PlainStream | None, secret: bytes) -> bytes:
    """Return what proves the namespace to the server of a stream without TLS, b"" if nothing does."""
    if plain is None or not secret:
        return b""
    try:
        return _proof.make(secret, plain.addresses(client=True))
    except OSError:  # the server has closed it already, as is found out next
        return b""
