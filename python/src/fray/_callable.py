"""Runs the pickled callable in the file that FRAY_CALLABLE names: `python -m fray._callable`.

The exit status is 0 when the callable returns, what it gives to sys.exit, 1 when it raises, and 2 when
there is nothing that can be run.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from fray import _pickling, _termination
from fray.cluster.types import PythonCall, TerminationCause

_REFUSED = "fray: the callable cannot be run: "


def main() -> int:
    """Run the callable and return the exit status."""
    file = os.environ.get("FRAY_CALLABLE", "")
    if not file:
        return _fail("fray: FRAY_CALLABLE is not set: only tasks of a job with a callable have it")
    try:
        call = _pickling.load(Path(file).read_bytes())
    except OSError as err:
        return _fail(f"fray: FRAY_CALLABLE cannot be read: {err}")
    except _pickling.CallableError as err:
        _termination.record(TerminationCause.CALLABLE_INVALID, str(err))
        return _fail(f"{_REFUSED}{err}")
    except Exception as err:  # of the code that unpickling runs
        traceback.print_exception(err)
        first = str(err).partition("\n")[0]
        why = f"{type(err).__qualname__}: {first}"
        trace = "".join(traceback.format_exception(err))
        _termination.record(_cause(err), f"it cannot be unpickled: {why}", trace=trace)
        return _fail(f"{_REFUSED}it cannot be unpickled, see above: {why}")
    return _run(call)


def _cause(err: Exception) -> TerminationCause:
    """Return the cause of a failed unpickling: for good if code is missing, or is no Python."""
    if isinstance(err, (ImportError, AttributeError, SyntaxError)):
        return TerminationCause.CALLABLE_INVALID
    return TerminationCause.CALLABLE_REFUSED


def _fail(message: str) -> int:
    sys.stderr.write(f"{message}\n")
    return 2


def _run(call: PythonCall) -> int:
    try:
        call.function(*call.args, **call.kwargs)
    except Exception as err:
        inner = err.__traceback__.tb_next if err.__traceback__ else None
        traceback.print_exception(err.with_traceback(inner))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
