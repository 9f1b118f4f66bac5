"""Answers probes and scrapes by HTTP/1. What is at /readyz and /metrics is left to `server`."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from fray.rpc._transport.wire import Stream

_MAX_REQUEST: Final = 16 << 10  # bytes

Page = tuple[int, str, str]
"""Status, content type, text."""


def answer(stream: Stream, begun: bytes, page: Callable[[str], Page], seconds: float) -> None:
    """Answer one request, of which some was received, and end the connection.

    Args:
        stream: Where it comes from.
        begun: Its first bytes.
        page: Gives what is at a path.
        seconds: How long all of it may take.
    """
    request = bytearray(begun)
    part = memoryview(bytearray(4096))
    until = time.monotonic() + seconds
    stream.set_patience(seconds)
    while b"\r\n\r\n" not in request and len(request) < _MAX_REQUEST and time.monotonic() < until:
        got = stream.recv_into(part)
        if not got:
            break
        request += part[:got]
    line = bytes(request.partition(b"\r\n")[0]).decode("latin-1").split(" ")
    method, path = line[0], line[1].partition("?")[0] if len(line) > 1 else ""
    status, kind, text = page(path) if method in ("GET", "HEAD") else (405, "text/plain", "only GET\n")
    body = text.encode()
    head = (
        f"HTTP/1.1 {status} {_REASONS.get(status, '')}\r\nContent-Type: {kind}; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    ).encode()
    send_all(stream, head if method == "HEAD" else head + body)
    stream.finish()


def send_all(stream: Stream, data: bytes | memoryview) -> None:
    """Send all, however long that takes."""
    view = memoryview(data)
    while view.nbytes:
        sent = stream.send([view], view.nbytes)
        view = view[sent:]
        if view.nbytes:
            stream.wait_writable()


_REASONS: Final = {200: "OK", 404: "Not Found", 405: "Method Not Allowed", 503: "Service Unavailable"}
