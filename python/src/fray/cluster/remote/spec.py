"""Where a fray cluster is and how it is known again: fray://HOST:PORT."""

from __future__ import annotations

import ipaddress
import re
import urllib.parse
from dataclasses import dataclass

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Spec:
    """The address of a cluster API."""

    host: str
    port: int
    fingerprint: str = ""
    """The SHA-256 of its TLS certificate in hex; "": plain text, which is for this machine only."""
    namespace: str = ""

    @property
    def target(self) -> str:
        """host:port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse(text: str) -> Spec:
    """Read "fray://host:port", with "?fingerprint=SHA256" and "&namespace=NAME" if need be.

    Raises:
        ValueError: it is something else, or a token would leave this machine in plain text.
    """
    try:
        url = urllib.parse.urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError as err:
        raise ValueError(f'"{text}" is no fray://host:port: {err}') from err
    if url.scheme != "fray" or not host or not port or url.path not in ("", "/") or url.username:
        raise ValueError(f'"{text}" is no fray://host:port')
    query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
    fingerprint = query.pop("fingerprint", "").lower().replace(":", "")
    namespace = query.pop("namespace", "")
    if query:
        raise ValueError(f'"{text}": {", ".join(query)} means nothing; known are fingerprint and namespace')
    if fingerprint and not _FINGERPRINT.fullmatch(fingerprint):
        raise ValueError(f'"{text}": the fingerprint is no SHA-256 in hex')
    if not fingerprint and not _is_loopback(host):
        raise ValueError(
            f'"{text}": {host} is not this machine, and a token must not leave it in plain text; '
            "add ?fingerprint= with the SHA-256 of the controller's certificate, as in the stack's lease"
        )
    return Spec(host, port, fingerprint, namespace)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
