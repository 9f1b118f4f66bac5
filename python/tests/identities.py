"""Identities of namespaces: keys, certificates of them, and the authorities that peers accept."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import NameOID

_AUTHORITY = ec.generate_private_key(ec.SECP256R1())


def _authority_name(key: ec.EllipticCurvePrivateKey) -> x509.Name:
    """Return an authority's name, which no other has."""
    digest = x509.SubjectKeyIdentifier.from_public_key(key.public_key()).digest.hex()
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fray authority {digest[:16]}")])


def default_authority() -> ec.EllipticCurvePrivateKey:
    """Return the key of the authority that certifies where no other is named."""
    return _AUTHORITY


def make_authority(key: ec.EllipticCurvePrivateKey = _AUTHORITY) -> x509.Certificate:
    """Return the certificate of an authority, as who leads a stack publishes it."""
    return (
        _builder(key.public_key())
        .subject_name(_authority_name(key))
        .issuer_name(_authority_name(key))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )


def make_identity(
    folder: Path,
    name: str,
    key: Ed25519PrivateKey | ec.EllipticCurvePrivateKey | None = None,
    authority: ec.EllipticCurvePrivateKey = _AUTHORITY,
    trusted: Sequence[ec.EllipticCurvePrivateKey] = (_AUTHORITY,),
) -> str:
    """Write a PEM file for a member of a namespace as the agent does for its tasks, and return its path."""
    key = key or Ed25519PrivateKey.generate()
    certificate = (
        _builder(key.public_key())
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fray actors of {name}")]))
        .issuer_name(_authority_name(authority))
        .add_extension(
            x509.SubjectAlternativeName(
                [x509.DNSName("fray-actors"), x509.UniformResourceIdentifier(f"fray://tests/{name}")]
            ),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(authority, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    for each in (certificate, *map(make_authority, trusted)):
        pem += each.public_bytes(serialization.Encoding.PEM)
    path = folder / f"{name}.pem"
    new = folder / f"{name}.pem.new"
    new.write_bytes(pem)
    new.rename(path)
    return str(path)


def _builder(key: Ed25519PublicKey | ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.datetime(1970, 1, 1))
        .not_valid_after(datetime.datetime(9999, 12, 31))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )
