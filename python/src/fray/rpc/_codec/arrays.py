"""Arrays as dtype, shape and bytes. numpy is imported with the first array that is met, never before."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any

from fray.rpc._codec.common import BAD_ARRAY, Buffer, CodecError, with_article

MAX_DIMS = 32
"""How many dimensions an array may have; older versions of numpy have no more."""

_CODES = {
    "bool": "|b1",
    "int8": "|i1",
    "int16": "<i2",
    "int32": "<i4",
    "int64": "<i8",
    "uint8": "|u1",
    "uint16": "<u2",
    "uint32": "<u4",
    "uint64": "<u8",
    "float16": "<f2",
    "float32": "<f4",
    "float64": "<f8",
    "complex64": "<c8",
    "complex128": "<c16",
}
"""What numpy calls them with the order of their bytes; it has no bfloat16."""

_NAMES = {code: name for name, code in _CODES.items()}
_SIZES = {name: int(code[2:]) for name, code in _CODES.items()} | {"bfloat16": 2}


def is_array(value: Any) -> bool:
    """Whether a value is an array or a number of numpy, jax, torch or the like."""
    kind = type(value)
    return hasattr(kind, "__array__") and hasattr(value, "dtype") and hasattr(value, "shape")


def is_plain(value: Any) -> bool:
    """Whether a value is an array or a number of numpy itself, and of no class that adds to that."""
    kind = type(value)
    if kind.__module__ != "numpy" or not is_array(value):
        return False
    return kind.__name__ == "ndarray" or not hasattr(kind, "__array_finalize__")


def parts(value: Any) -> tuple[str, list[int], memoryview]:
    """Return dtype, shape and data of an array; the data is a view of it where it is stored in C order.

    Raises:
        CodecError: its elements are no numbers, or it cannot be read from this process's memory.
    """
    np = _numpy()
    try:
        array = np.asarray(value)
    except Exception as err:
        what = type(value).__qualname__
        raise CodecError("", f"{with_article(what)} cannot be made a numpy array: {err}") from err
    dtype = array.dtype
    name = _NAMES.get(dtype.str)
    if name is None:  # big endian, of another package, or no numbers at all
        name = dtype.name
        check(name, [], _SIZES.get(name, 0))
        array = array.astype(_CODES[name]) if name in _CODES else array
    shape = list(array.shape)
    if len(shape) > MAX_DIMS:
        check(name, shape, array.nbytes)
    data: memoryview = np.ascontiguousarray(array).reshape(-1).view(np.uint8).data
    return name, shape, data


def check(dtype: str, shape: list[int], size: int) -> None:
    """Refuse an array whose parts do not agree, with the message of Go.

    Raises:
        CodecError: its text is what is wrong.
    """
    if dtype not in _SIZES:
        raise CodecError(
            "",
            f"an array of dtype {dtype} is carried by no codec; "
            "convert it to a bool, int, float or complex dtype",
        )
    if len(shape) > MAX_DIMS:
        raise CodecError("", f"an array of {len(shape)} dimensions; at most {MAX_DIMS} are carried")
    if math.prod(n for n in shape if n) * _SIZES[dtype] >= 1 << 62:
        raise CodecError("", f"no array has the shape {shape}")
    want = math.prod(shape) * _SIZES[dtype]
    if size != want:
        raise CodecError("", f"an array of shape {shape} of {dtype} has {want} bytes, got {size}")


def make(dtype: Any, shape: Any, data: Buffer) -> Any:
    """Return a read-only array over the data, or a number of numpy if the shape is empty.

    Raises:
        CodecError: the parts do not agree, or what is needed to hold them is not installed.
    """
    if not isinstance(dtype, str) or not isinstance(shape, list):
        raise CodecError("", BAD_ARRAY)
    if any(type(n) is not int or not 0 <= n < 1 << 63 for n in shape):
        raise CodecError("", BAD_ARRAY)
    check(dtype, shape, len(data))
    np = _numpy()
    kind = _CODES.get(dtype) or _bfloat16()
    try:
        array = np.frombuffer(data, kind).reshape(shape) if len(data) else np.zeros(shape, kind)
    except ValueError:
        raise CodecError("", BAD_ARRAY) from None
    if dtype == "bool" and len(data) and array.view(np.uint8).max() > 1:
        raise CodecError("", BAD_ARRAY)
    array.flags.writeable = False
    return array if shape else array[()]


def _numpy() -> Any:
    loaded = sys.modules.get("numpy")
    if loaded is not None:
        return loaded
    try:
        return importlib.import_module("numpy")
    except ImportError:
        raise CodecError("", "an array needs the package numpy, which is not installed here") from None


def _bfloat16() -> Any:
    try:
        return importlib.import_module("ml_dtypes").bfloat16
    except ImportError:
        problem = "an array of bfloat16 needs the package ml_dtypes, which is not installed here"
        raise CodecError("", problem) from None
