"""What messages take in memory, in processes of their own."""

from __future__ import annotations

import contextlib
import secrets
import socket
import struct
from collections.abc import Callable, Iterator

import grpc
import pytest

from fray._pb import actor_pb2, actor_pb2_grpc
from fray.rpc.codec import CodecTooLargeError, decode_args, decode_result, encode_args, encode_result
from measured import LIMIT, Measured, measured
from scripted import Scripted, packed, receive

ROOM = LIMIT - 512


def one(element: bytes) -> bytes:
    """Return arguments of one list of as many elements as there is room for."""
    count = (ROOM - 16) // len(element)
    return b"\x92\x91\xdd" + struct.pack(">I", count) + element * count + b"\x80"


def pages(element: bytes) -> bytes:
    """Return the same in lists of which none is large."""
    return one(b"\xdc\x03\xe8" + element * 1000)


def text(head: str, element: str, tail: str) -> bytes:
    """Return JSON of as many elements as there is room for."""
    count = (ROOM - len(head) - len(tail)) // (len(element) + 1)
    return (head + ",".join([element] * count) + tail).encode()


HOSTILE: dict[str, tuple[int, Callable[[], bytes], int]] = {
    "empty maps": (1, lambda: one(b"\x80"), actor_pb2.CODE_TOO_LARGE),
    "empty lists": (1, lambda: one(b"\x90"), actor_pb2.CODE_TOO_LARGE),
    "nils": (1, lambda: one(b"\xc0"), actor_pb2.CODE_TOO_LARGE),
    "negative ints": (1, lambda: one(b"\xe0"), actor_pb2.CODE_TOO_LARGE),
    "pages of empty maps": (1, lambda: pages(b"\x80"), actor_pb2.CODE_TOO_LARGE),
    "pages of maps of one": (1, lambda: pages(b"\x81\x00\x00"), actor_pb2.CODE_TOO_LARGE),
    "pages of negative ints": (1, lambda: pages(b"\xe0"), actor_pb2.CODE_TOO_LARGE),
    "pages of floats": (1, lambda: pages(b"\xcb\x3f\xf1" + bytes(6)), actor_pb2.CODE_TOO_LARGE),
    "pages of ints": (1, lambda: pages(b"\xd1\x7f\xff"), actor_pb2.CODE_TOO_LARGE),
    "pages of short strings": (1, lambda: pages(b"\xa2ab"), actor_pb2.CODE_TOO_LARGE),
    "pages of wide strings": (1, lambda: pages(b"\xa9abcde\xf0\x9f\x8e\x89"), actor_pb2.CODE_TOO_LARGE),
    "pages of bytes": (1, lambda: pages(b"\xc4\x01a"), actor_pb2.CODE_TOO_LARGE),
    "pages of times": (1, lambda: pages(b"\xd6\xff\x00\x00\x00\x01"), actor_pb2.CODE_TOO_LARGE),
    "pages of actors": (1, lambda: pages(b"\xd6\x02\x93\xa0\xa0\xa0"), actor_pb2.CODE_TOO_LARGE),
    "pages of strings of length 0": (1, lambda: pages(b"\xd9\x00"), actor_pb2.CODE_TOO_LARGE),
    "claims within claims": (
        1,
        lambda: b"\x92\x91" + (b"\xdd" + struct.pack(">I", ROOM // 8)) * 90 + bytes(ROOM - 500),
        actor_pb2.CODE_TOO_LARGE,
    ),
    "a wide string": (
        1,
        lambda: b"\x92\x91\xdb" + struct.pack(">I", ROOM - 20) + b"a" * (ROOM - 24) + "🎉".encode() + b"\x80",
        actor_pb2.CODE_TOO_LARGE,
    ),
    "deep": (1, lambda: b"\x91" * ROOM, actor_pb2.CODE_TOO_LARGE),
    "JSON of empty objects": (2, lambda: text("[[[", "{}", "]],{}]"), actor_pb2.CODE_TOO_LARGE),
    "JSON of numbers": (2, lambda: text("[[[", "1", "]],{}]"), actor_pb2.CODE_TOO_LARGE),
    "deep JSON": (2, lambda: b"[" * ROOM, actor_pb2.CODE_TOO_LARGE),
}


def connect(address: str) -> socket.socket:
    """Return a connection to a server, with the handshake of a client sent."""
    host, _, port = address.rpartition(":")
    sock = socket.create_connection((host, int(port)))
    handshake = actor_pb2.Handshake(version=1, peer=secrets.token_hex(13), max_message_bytes=LIMIT)
    sock.sendall(b"FRAYACT1" + packed(actor_pb2.Frame(handshake=handshake)))
    return sock


class Server:
    """A server process: its address, and connections by both protocols."""

    def __init__(self, process: Measured) -> None:
        self._process = process
        self.address = process.line()
        self._socket = connect(self.address)
        self._seq = 0
        self._channel = grpc.insecure_channel(self.address, options=[("grpc.max_send_message_length", -1)])
        self.invoke = actor_pb2_grpc.ActorsStub(self._channel).Invoke
        # All that it imports and starts for calls is in its memory from here on.
        args, _ = encode_args(1, (1,), {})
        self._small = actor_pb2.Call(actor="taker", method="any", args=args)
        assert not self.invoke(self._small).HasField("error")
        assert not self.call(self._small).HasField("error")
        self._base = process.memory()

    def call(self, message: actor_pb2.Call) -> actor_pb2.Reply:
        """Return the reply to a call in a frame."""
        self._seq += 1
        message.seq = self._seq
        self._socket.sendall(packed(actor_pb2.Frame(call=message)))
        while not (frame := receive(self._socket)[0]).HasField("reply"):
            pass
        return frame.reply

    def within_limits(self) -> None:
        """Assert the peak of all messages so far, and that at most one of them is still in memory."""
        assert not self.call(self._small).HasField("error")
        peak = self._process.memory() - self._base
        assert peak <= 2.5 * LIMIT, f"the peak is {peak / LIMIT:.2f} times the limit of {LIMIT >> 20} MiB"

    def close(self) -> None:
        self._socket.close()
        self._channel.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """One process for all messages of a protocol, so that what one leaves behind counts for the next."""
    with measured("serve") as process, contextlib.closing(Server(process)) as server:
        yield server


@pytest.fixture(scope="module")
def grpc_server() -> Iterator[Server]:
    with measured("serve") as process, contextlib.closing(Server(process)) as server:
        yield server


def hostile(name: str) -> tuple[actor_pb2.Call, int]:
    """Return a call, and the code of the error that it gets."""
    codec, args, code = HOSTILE[name]
    return actor_pb2.Call(actor="taker", method="any", codec=codec, args=args()), code  # type: ignore[arg-type]


@pytest.mark.parametrize("name", HOSTILE)
def test_peak_memory_of_hostile_messages(server: Server, name: str) -> None:
    message, code = hostile(name)
    error = server.call(message).error
    assert error.code == code, error.message
    server.within_limits()


@pytest.mark.parametrize("name", ["empty maps", "pages of floats", "JSON of numbers"])
def test_peak_memory_of_hostile_messages_by_grpc(grpc_server: Server, name: str) -> None:
    message, code = hostile(name)
    message.args = message.args[: ROOM // 2]  # the most that is taken
    error = grpc_server.invoke(message).error
    assert error.code == code, error.message
    grpc_server.within_limits()


def varint(number: int) -> bytes:
    """Return a length within 28 bits as protobuf writes it, in four bytes."""
    return bytes([number & 127 | 128, number >> 7 & 127 | 128, number >> 14 & 127 | 128, number >> 21])


FILLED = LIMIT - LIMIT // 32


HEADS: dict[str, Callable[[], bytes]] = {
    "packed sizes": lambda: b"\x52" + varint(FILLED) + bytes(FILLED),
    "sizes": lambda: b"\x50\x00" * (ROOM // 2),
    "buffers": lambda: b"\x4a\x00" * (ROOM // 2),
    "unknown fields": lambda: b"\xf8\x01\x00" * (ROOM // 3),
    "a long name": lambda: b"\x0a" + varint(FILLED) + b"a" * FILLED,
}


@pytest.mark.parametrize("name", HEADS)
def test_peak_memory_of_hostile_heads(server: Server, name: str) -> None:
    inner = HEADS[name]()
    head = b"\x12" + varint(len(inner)) + inner
    for _ in range(2):
        with connect(server.address) as sock:
            sock.sendall(struct.pack(">II", len(head), 0) + head)
            with contextlib.suppress(EOFError, OSError):
                while True:  # until the server has closed
                    receive(sock)
        server.within_limits()


def test_peak_memory_of_a_client_of_hostile_servers() -> None:
    result, _ = encode_result(1, "int")

    def on_call(_: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        return actor_pb2.Reply(seq=call.seq, codec=codec, result=result)  # type: ignore[arg-type]

    codec = 1
    with Scripted(on_call) as server, measured("call") as client:
        client.send(server.address)
        assert [client.line() for _ in range(3)] == ["int"] * 3
        base = int(client.line())
        for name in ("pages of empty maps", "pages of floats", "JSON of numbers"):
            codec, args, _ = HOSTILE[name]
            result = args()
            client.send(server.address)
            assert [client.line() for _ in range(3)] == ["too_large"] * 3, name
            peak = int(client.line()) - base
            assert peak <= 2.5 * LIMIT, f"{name}: the peak is {peak / LIMIT:.2f} times the limit"


def test_the_error_names_the_limit_and_what_to_do() -> None:
    with pytest.raises(CodecTooLargeError, match=r"more than 1 MiB .*raise max_message_bytes there"):
        decode_result(1, b"\xdc\x40\x00" + b"\x80" * 0x4000, memory=1 << 20)
    assert len(decode_result(1, b"\xdc\x40\x00" + b"\x80" * 0x4000, memory=2 << 20)) == 0x4000


@pytest.mark.parametrize(
    "value",
    [
        list(range(-50_000, 50_000)),
        [n / 3 for n in range(1_000_000)],
        [{"prompt": f"say {n}", "reward": n / 3, "step": n} for n in range(50_000)],
        ["ä prompt of some length"] * 100_000,
        "a" * 50_000_000,
        bytes(50_000_000),
        [[[[[[0] * 1000] * 10]]]] * 10,
    ],
    ids=["ints", "floats", "dicts", "strings", "a string", "bytes", "nested"],
)
def test_large_values_are_carried(value: object) -> None:
    args, buffers = encode_args(1, (value,), {})
    assert decode_args(1, args, buffers) == ([value], {})
