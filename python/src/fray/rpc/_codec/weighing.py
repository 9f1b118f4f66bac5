"""How much memory values will take, before any is made.

A message is sent by a peer, which may know nothing but the port. An empty map is one byte on the wire and
64 in memory, so a message is scanned before it is decoded. Python is slow at that, so messages that cannot
take too much whatever they hold are let pass, and others go through regular expressions, which run in C.
"""

from __future__ import annotations

import re
from typing import Final

from fray.rpc._codec.common import Buffer, CodecTooLargeError

DEFAULT_MEMORY: Final = 64 << 20
"""How much memory decoded values may take, in bytes, where a caller states no limit."""

_WORST: Final = 72  # bytes of memory of one byte of msgpack
_CHUNK: Final = 1 << 16  # bytes that are scanned at once
_LIST, _TABLE, _ROW, _SLOT = 72, 72, 128, 8
_EXT: Final = 64  # of the object itself; what it holds is counted when it is made

_FIXED: Final = {
    0xCA: 4,
    0xCB: 8,
    0xCC: 1,
    0xCD: 2,
    0xCE: 4,
    0xCF: 8,
    0xD0: 1,
    0xD1: 2,
    0xD2: 4,
    0xD3: 8,
}
"""How many bytes follow the first."""


def _text(size: int) -> int:
    """Return what a str of ASCII takes."""
    return 0 if size < 2 else 64 + size


def _costs() -> list[int]:
    """Return the memory of a value that begins with a byte, where the byte determines it."""
    costs = [0] * 256
    for byte in range(256):
        if 0x80 <= byte <= 0x8F:
            costs[byte] = _TABLE + _ROW * (byte & 15)
        elif 0x90 <= byte <= 0x9F:
            costs[byte] = _LIST + _SLOT * (byte & 15)
        elif 0xA0 <= byte <= 0xBF:
            costs[byte] = _text(byte & 31)
        elif 0xCA <= byte <= 0xD3 or byte >= 0xE0:
            costs[byte] = 32
    return costs


_COSTS: Final = _costs()


def _tokens() -> bytes:
    """Return an expression for one value that its first byte determines, with that byte in a group."""
    plain = rb"[\x00-\x9f\xa0\xc0\xc2\xc3\xe0-\xff]"
    sized = {size: bytes(b for b, n in _FIXED.items() if n == size) for size in (1, 2, 4, 8)}
    choices = [plain]
    choices += [b"[" + re.escape(heads) + b"][\\x00-\\xff]{%d}" % size for size, heads in sized.items()]
    choices += [b"\\x%x[\\x00-\\x7f]{%d}" % (0xA0 + size, size) for size in range(1, 32)]
    return b"(?:" + b"|".join(choices) + b")"


_RUN: Final = re.compile(_tokens() + b"*+")
_FIRSTS: Final = re.compile(b"(?=([\\x00-\\xff]))" + _tokens())
_ALIKE: Final = {
    head: (re.compile(b"(?:\\x%x[\\x00-\\xff]{%d})++" % (head, size)), 1 + size, _COSTS[head])
    for head, size in _FIXED.items()
} | dict.fromkeys([*range(0x80), 0xC0, 0xC2, 0xC3], (re.compile(rb"[\x00-\x7f\xc0\xc2\xc3]++"), 1, 0))
"""Many values of one kind, as lists of numbers have: their expression, and the size and cost of each."""
_MANY: Final = 1 << 10  # bytes from which on this pays
_SIZED: Final = {0xC4: 1, 0xC5: 2, 0xC6: 4, 0xD9: 1, 0xDA: 2, 0xDB: 4, 0xC7: 1, 0xC8: 2, 0xC9: 4}
"""How many bytes the length has."""
_COUNTED: Final = {0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}
"""How many bytes the number of elements has."""


class Budget:
    """How much memory the values of one message may still take, in bytes."""

    __slots__ = ("left", "limit")

    def __init__(self, limit: int) -> None:
        self.left = self.limit = limit or DEFAULT_MEMORY

    def take(self, size: int) -> None:
        """Note so many bytes.

        Raises:
            CodecTooLargeError: they are not left.
        """
        self.left -= size
        if self.left < 0:
            raise CodecTooLargeError(self.limit)

    def msgpack(self, data: Buffer) -> bool:
        """Refuse a message whose values take too much. Bytes that are no msgpack are left to the decoder.

        Return whether it was scanned: then its lists declare no more than they may have.

        Raises:
            CodecTooLargeError: they do.
        """
        if len(data) * _WORST <= self.left:
            return False
        at, end = 0, len(data)
        while at < end:
            alike = _ALIKE.get(data[at])
            if alike is not None:
                pattern, size, cost = alike
                found = pattern.match(data, at, min(at + size * _CHUNK, end))
                if found is not None and found.end() - at >= _MANY:
                    self.take((found.end() - at) // size * cost)
                    at = found.end()
                    continue
            found = _RUN.match(data, at, min(at + _CHUNK, end))
            after = found.end() if found else at
            if after > at:
                firsts = b"".join(_FIRSTS.findall(data, at, after))
                self.take(sum(firsts.count(byte) * _COSTS[byte] for byte in set(firsts)))
                at = after
            else:
                at = self._single(data, at)
        return True

    def _single(self, data: Buffer, at: int) -> int:
        """Count a value that has a length of its own; return where the next begins."""
        first = data[at]
        assert isinstance(first, int)
        if first in _COUNTED:
            after = at + 1 + _COUNTED[first]
            count = int.from_bytes(data[at + 1 : after], "big")
            self.take(_LIST + count * (_SLOT if first < 0xDE else _ROW))
            return after
        if first in _SIZED:
            after = at + 1 + _SIZED[first]
            size = int.from_bytes(data[at + 1 : after], "big")
            if 0xC7 <= first <= 0xC9:
                size += 1
        elif 0xD4 <= first <= 0xD8:
            after, size = at + 2, 1 << (first - 0xD4)
        elif 0xA0 <= first <= 0xBF:
            after, size = at + 1, first & 31
        else:  # cut off, or not of msgpack
            return at + 9
        wide = (0xA0 <= first <= 0xBF or 0xD9 <= first <= 0xDB) and not _is_ascii(data, after, size)
        self.take(_EXT + 16 + min(size, len(data)) * (4 if wide else 1))
        return after + size

    def json(self, data: Buffer) -> None:
        """Refuse a text whose values take too much.

        Signs within strings are counted too, which makes it a bound from above. The text itself is kept twice
        while it is parsed, in wide characters if it has one that is no ASCII.

        Raises:
            CodecTooLargeError: they do.
        """
        size = len(data)
        self.take(2 * size)
        text = bytes(data)
        wide = 1 if text.isascii() else 4
        counts = {sign: text.count(sign) for sign in (b",", b":", b"[", b"{")}
        self.take(2 * (wide - 1) * size + 112 * counts[b","] + 112 * counts[b":"])
        self.take((_LIST + 64) * counts[b"["] + (_TABLE + 192) * counts[b"{"])


def _is_ascii(data: Buffer, at: int, size: int) -> bool:
    return all(bytes(data[n : min(n + _CHUNK, at + size)]).isascii() for n in range(at, at + size, _CHUNK))
