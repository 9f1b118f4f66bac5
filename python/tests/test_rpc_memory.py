"""What messages take in memory, in programs of their own."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable

import grpc
import pytest

from fray._pb import actor_pb2, actor_pb2_grpc
from fray.rpc.codec import CodecTooLargeError, decode_args, decode_result, encode_args
from measured import LIMIT, measured
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
        lambda: b"\x92\x91" + b"\xdd\x00\x80\x00\x00" * 90 + bytes(ROOM - 500),
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


def within_3_limits(peak: int) -> None:
    assert peak <= 3 * LIMIT, (
        f"the peak is {peak >> 20} MiB: more than 3 times the limit of {LIMIT >> 20} MiB"
    )


@pytest.mark.parametrize("name", HOSTILE)
def test_peak_memory_of_hostile_messages(name: str) -> None:
    codec, args, code = HOSTILE[name]
    message = actor_pb2.Call(actor="taker", method="any", codec=codec, args=args())  # type: ignore[arg-type]
    with measured("serve") as server:
        host, _, port = server.line().rpartition(":")
        with socket.create_connection((host, int(port))) as sock:
            handshake = actor_pb2.Handshake(version=1, peer="hostile", max_message_bytes=LIMIT)
            sock.sendall(b"FRAYACT1" + packed(actor_pb2.Frame(handshake=handshake)))
            for seq in range(1, 4):
                message.seq = seq
                sock.sendall(packed(actor_pb2.Frame(call=message)))
                while not (frame := receive(sock)[0]).HasField("reply"):
                    pass
                assert frame.reply.error.code == code, frame.reply.error.message
        within_3_limits(server.end())


@pytest.mark.parametrize("name", ["empty maps", "pages of floats", "JSON of numbers"])
def test_peak_memory_of_hostile_messages_by_grpc(name: str) -> None:
    codec, args, code = HOSTILE[name]
    half = args()[: ROOM // 2]  # the most that is taken
    call = actor_pb2.Call(actor="taker", method="any", codec=codec, args=half)  # type: ignore[arg-type]
    with measured("serve") as server:
        options = [("grpc.max_send_message_length", -1)]
        with grpc.insecure_channel(server.line(), options=options) as channel:
            for _ in range(3):
                reply = actor_pb2_grpc.ActorsStub(channel).Invoke(call)
                assert reply.error.code == code, reply.error.message
        within_3_limits(server.end())


@pytest.mark.parametrize(
    "inner",
    [
        b"\x52\x80\x80\x80\x1f" + bytes(0x3E00000),
        b"\x50\x00" * (ROOM // 2),
        b"\x4a\x00" * (ROOM // 2),
        b"\xf8\x01\x00" * (ROOM // 3),
        b"\x0a\x80\x80\x80\x1f" + b"a" * 0x3E00000,
    ],
    ids=["packed sizes", "sizes", "buffers", "unknown fields", "a long name"],
)
def test_peak_memory_of_hostile_heads(inner: bytes) -> None:
    size = len(inner)
    head = bytes([0x12, size & 127 | 128, size >> 7 & 127 | 128, size >> 14 & 127 | 128, size >> 21]) + inner
    with measured("serve") as server:
        host, _, port = server.line().rpartition(":")
        for _ in range(2):
            with socket.create_connection((host, int(port))) as sock:
                handshake = actor_pb2.Handshake(version=1, peer="hostile", max_message_bytes=LIMIT)
                sock.sendall(b"FRAYACT1" + packed(actor_pb2.Frame(handshake=handshake)))
                sock.sendall(struct.pack(">II", len(head), 0) + head)
                with contextlib.suppress(EOFError, OSError):
                    while True:  # until the server has refused
                        receive(sock)
        within_3_limits(server.end())


@pytest.mark.parametrize("name", ["pages of empty maps", "pages of floats", "JSON of numbers"])
def test_peak_memory_of_a_client_of_a_hostile_server(name: str) -> None:
    codec, args, _ = HOSTILE[name]
    result = args()

    def on_call(_: Scripted, call: actor_pb2.Call) -> actor_pb2.Reply:
        return actor_pb2.Reply(seq=call.seq, codec=codec, result=result)  # type: ignore[arg-type]

    with Scripted(on_call) as server, measured("call", server.address) as client:
        assert [client.line() for _ in range(3)] == ["too_large"] * 3
        within_3_limits(int(client.line()))


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
