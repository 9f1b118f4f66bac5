"""The key and certificate that the actors and callers of one namespace on an Iris cluster have in common.

Iris has no authority that certifies its tasks. So the first client makes a key with a certificate that it
signs itself, keeps them in a file of the user's, and ships them with the jobs that it launches. A peer that
shows that very certificate is of the namespace, see `_transport.tls`. The certificate is one of P-256 (RFC
5480, RFC 5280), made with Python's integers: a library for that would be one more dependency of every
program, and here a key is made once.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
import ssl
import tempfile
import urllib.parse
from pathlib import Path

# The curve P-256: SP 800-186, 3.2.1.3.
_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_Point = tuple[int, int]

_EC_KEY = "06072a8648ce3d0201"  # 1.2.840.10045.2.1
_P256 = "06082a8648ce3d030107"  # 1.2.840.10045.3.1.7
_ECDSA_SHA256 = "06082a8648ce3d040302"  # 1.2.840.10045.4.3.2
_COMMON_NAME = "0603550403"  # 2.5.4.3
_ALTERNATIVE_NAME = "0603551d11"  # 2.5.29.17
_BASIC_CONSTRAINTS = "0603551d13"  # 2.5.29.19


def own_identity(namespace: str) -> str:
    """Return the file with this user's identity for a namespace, which is made where there is none.

    It is in the directory of a user's own state, $XDG_STATE_HOME/fray/iris, or ~/.local/state/fray/iris.
    """
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state")
    path = home / "fray" / "iris" / f"{urllib.parse.quote(namespace, safe='')}.pem"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write_once(path, make_identity(f"fray://iris/{namespace}"))
    return str(path)


def _write_once(path: Path, text: str) -> None:
    """Write a file as a whole, unless another process was faster."""
    handle, name = tempfile.mkstemp(dir=path.parent)  # which only the user may read
    with os.fdopen(handle, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    with contextlib.suppress(FileExistsError):
        os.link(name, path)
    Path(name).unlink()


def fingerprint_of(path: str) -> str:
    """Return the SHA-256 of the certificate in an identity's file, in hex."""
    pem = Path(path).read_text()
    start, end = pem.index(ssl.PEM_HEADER), pem.index(ssl.PEM_FOOTER) + len(ssl.PEM_FOOTER)
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem[start:end])).hexdigest()


def make_identity(space: str) -> str:
    """Return a new private key and its certificate for a namespace, given as a URI, in PEM."""
    private = secrets.randbelow(_N - 1) + 1
    public = _point_bytes(_times(private, _G))
    key = _sequence(_integer(1), _tlv(0x04, private.to_bytes(32)), _tlv(0xA0, bytes.fromhex(_P256)))
    algorithm = _sequence(bytes.fromhex(_ECDSA_SHA256))
    name = _sequence(_tlv(0x31, _sequence(bytes.fromhex(_COMMON_NAME), _tlv(0x0C, b"fray actors"))))
    names = _sequence(_tlv(0x82, b"fray-actors"), _tlv(0x86, space.encode()))
    body = _sequence(
        _tlv(0xA0, _integer(2)),  # version 3
        _integer(int.from_bytes(secrets.token_bytes(16)) >> 1),
        algorithm,
        name,
        _sequence(
            _tlv(0x17, b"700101000000Z"), _tlv(0x18, b"99991231235959Z")
        ),  # without end (RFC 5280, 4.1.2.5)
        name,
        _sequence(_sequence(bytes.fromhex(_EC_KEY), bytes.fromhex(_P256)), _bits(public)),
        _tlv(
            0xA3,
            _sequence(
                _sequence(
                    bytes.fromhex(_BASIC_CONSTRAINTS),
                    _tlv(0x01, b"\xff"),
                    _tlv(0x04, _sequence(_tlv(0x01, b"\xff"))),
                ),
                _sequence(bytes.fromhex(_ALTERNATIVE_NAME), _tlv(0x04, names)),
            ),
        ),
    )
    certificate = _sequence(body, algorithm, _bits(_sign(private, body)))
    return _pem("EC PRIVATE KEY", key) + _pem("CERTIFICATE", certificate)


def _sign(private: int, message: bytes) -> bytes:
    """Return an ECDSA signature (FIPS 186-5, 6.4.1) over SHA-256, in DER."""
    digest = int.from_bytes(hashlib.sha256(message).digest())
    while True:
        k = secrets.randbelow(_N - 1) + 1
        r = _times(k, _G)[0] % _N
        s = pow(k, -1, _N) * (digest + r * private) % _N
        if r and s:
            return _sequence(_integer(r), _integer(s))


def _times(factor: int, point: _Point) -> _Point:
    """Return a multiple of a point of the curve, for a factor from 1 to its order."""
    result: _Point | None = None
    while factor:
        if factor & 1:
            result = point if result is None else _plus(result, point)
        point = _plus(point, point)
        factor >>= 1
    assert result is not None
    return result


def _plus(a: _Point, b: _Point) -> _Point:
    """Return the sum of two points that are not inverse to each other."""
    if a == b:
        slope = (3 * a[0] * a[0] - 3) * pow(2 * a[1], -1, _P)
    else:
        slope = (b[1] - a[1]) * pow(b[0] - a[0], -1, _P)
    x = (slope * slope - a[0] - b[0]) % _P
    return x, (slope * (a[0] - x) - a[1]) % _P


def _point_bytes(point: _Point) -> bytes:
    return b"\x04" + point[0].to_bytes(32) + point[1].to_bytes(32)


# DER: ITU-T X.690.


def _tlv(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes([tag, size]) + content
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(length)]) + length + content


def _sequence(*parts: bytes) -> bytes:
    return _tlv(0x30, b"".join(parts))


def _integer(value: int) -> bytes:
    return _tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1))


def _bits(content: bytes) -> bytes:
    return _tlv(0x03, b"\0" + content)


def _pem(label: str, content: bytes) -> str:
    text = base64.b64encode(content).decode()
    lines = [text[i : i + 64] for i in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])
