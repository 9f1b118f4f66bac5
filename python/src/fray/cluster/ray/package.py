"""The package fray as an archive, which is sent to the cluster once, so that its nodes need not have fray.

A cluster's registry and supervisors are of the client that starts them. Sending fray this way rather than as
a runtime environment of Ray's lets Ray use the worker processes that it has ready.
"""

from __future__ import annotations

import functools
import hashlib
import io
import zipfile

from fray.cluster.own_files import own_files

_EPOCH = (1980, 1, 1, 0, 0, 0)


@functools.cache
def package() -> tuple[str, bytes]:
    """Return the SHA-256 of the archive, and the archive."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, path in own_files():
            info = zipfile.ZipInfo(name, _EPOCH)
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            archive.writestr(info, path.read_bytes())
    data = content.getvalue()
    return hashlib.sha256(data).hexdigest(), data
