"""What outlives the registry's process: Ray's internal key-value store, which the head keeps.

Keys are "NAMESPACE/KIND/NAME" in a space of fray's own, with "%2F" for a "/" of the namespace. Blobs, which
may be large, are cut into parts, whose number is written last. Values are not shown in Ray's dashboard, so
secrets of jobs may be among them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Any

_SPACE = b"fray"
_PART = 4 << 20  # bytes; a message of Ray's has at most some hundred MiB
MAX_BLOB = 512 << 20
"""The most bytes of one blob."""
_AT_HAND = 16 << 20  # bytes of blobs that a process keeps for attempts that begin soon


class Store:
    """The values of one namespace."""

    def __init__(self, namespace: str) -> None:
        from ray.experimental import internal_kv

        self._kv: Any = internal_kv
        self._prefix = prefix_of(namespace)
        self._at_hand: dict[str, bytes] = {}
        self._there: set[str] = set()  # blobs that were found, or written, and not deleted since

    def put(self, kind: str, name: str, value: bytes) -> None:
        """Write a value."""
        self._kv._internal_kv_put(self._key(kind, name), value, overwrite=True, namespace=_SPACE)

    def get(self, kind: str, name: str) -> bytes | None:
        """Return a value, None if there is none."""
        found: bytes | None = self._kv._internal_kv_get(self._key(kind, name), namespace=_SPACE)
        return found

    def delete(self, kind: str, name: str) -> None:
        """Remove a value, if it is there."""
        self._kv._internal_kv_del(self._key(kind, name), namespace=_SPACE)

    def names(self, kind: str, prefix: str = "") -> list[str]:
        """Return the names of a kind that begin so, sorted."""
        start = self._key(kind, "")
        found = self._kv._internal_kv_list(self._key(kind, prefix), namespace=_SPACE)
        return sorted(key.decode().removeprefix(start) for key in found)

    def _key(self, kind: str, name: str) -> str:
        return f"{self._prefix}{kind}/{name}"

    # Blobs

    def has_blob(self, sha256: str) -> bool:
        """Report whether a blob is there as a whole. Only one process deletes blobs: the registry."""
        if sha256 not in self._there and self.get("blob", sha256) is not None:
            self._there.add(sha256)
        return sha256 in self._there

    def put_blob(self, sha256: str, parts: Iterator[bytes]) -> None:
        """Write a blob."""
        count = 0
        for part in parts:
            self.put("blob", f"{sha256}/{count}", part)
            count += 1
        self.put("blob", sha256, str(count).encode())
        self._there.add(sha256)

    def put_small(self, sha256: str, content: bytes) -> None:
        """Write a blob, and keep it at hand in this process while there is room."""
        self.put_blob(sha256, iter([content]))
        if sum(map(len, self._at_hand.values())) + len(content) <= _AT_HAND:
            self._at_hand[sha256] = content

    def at_hand(self, blobs: Iterable[str]) -> dict[str, bytes]:
        """Return those of some blobs that this process has at hand."""
        return {sha256: self._at_hand[sha256] for sha256 in blobs if sha256 in self._at_hand}

    def blob(self, sha256: str) -> bytes:
        """Return a blob.

        Raises:
            LookupError: it is not there.
        """
        count = self.get("blob", sha256)
        parts = [] if count is None else [self.get("blob", f"{sha256}/{i}") for i in range(int(count))]
        data = b"".join(part for part in parts if part is not None)
        if count is None or hashlib.sha256(data).hexdigest() != sha256:
            raise LookupError(f"the blob {sha256[:12]} is not in Ray's store")
        return data

    def delete_blob(self, sha256: str) -> None:
        """Remove a blob."""
        self._at_hand.pop(sha256, None)
        self._there.discard(sha256)
        self.delete("blob", sha256)
        for name in self.names("blob", f"{sha256}/"):
            self.delete("blob", name)


def prefix_of(namespace: str) -> str:
    """Return what the keys of a namespace begin with, and those of no other, such as "team/job" of "team"."""
    return namespace.replace("/", "%2F") + "/"


def parts_of(content: bytes) -> Iterator[bytes]:
    """Cut bytes into parts of the size that is stored."""
    for start in range(0, len(content), _PART):
        yield content[start : start + _PART]
