"""Which buffers of a result may change after the method has returned it: those are copied.

A reply is sent after the next call has begun, and again if its connection breaks.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fray.rpc._transport.transfer import PARTS_FROM, copied

if TYPE_CHECKING:
    from fray.rpc._transport.wire import Buffer


def stable(result: list[Any], buffers: Sequence[Buffer]) -> list[Buffer]:
    """Return the buffers of a result, with copies of those that may change.

    Args:
        result: What the method returned, in a list that holds the only reference to it which fray has.
        buffers: What is sent of it beside the message.
    """
    assert len(result) == 1
    return [b if _is_fresh(b) else copied(b) for b in buffers]


def _is_fresh(data: Buffer) -> bool:
    """Return whether the data is that of a large numpy array that nothing but the result refers to."""
    if not isinstance(data, memoryview) or len(data) < PARTS_FROM or "numpy" not in sys.modules:
        return False
    import numpy as np

    view = data.obj
    if not isinstance(view, np.ndarray) or type(view.base) is not np.ndarray or not view.base.flags.owndata:
        return False
    return _references(view) <= _fewest()


def _references(view: Any) -> int:
    return sys.getrefcount(view.base)


@lru_cache(maxsize=1)
def _fewest() -> int:
    """Return how many references there are to an array that only a list and a view of it refer to."""
    import numpy as np

    only = [np.zeros(8)]
    return _references(only[0].reshape(-1).view(np.uint8))
