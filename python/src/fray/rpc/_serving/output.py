"""What actors of a task write: lines that tell which actor wrote them, and why methods failed.

A task that hosts several objects writes to one log. There a line that a method prints or logs begins with the
object's first name, "[counter] ", by which `fray logs --actor` finds it. Outside of tasks nothing is changed.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
from typing import Any, Final, TextIO

from fray.rpc._transport.call_chain import here, task_call

OUTPUT: Final = "output"
"""The key of an endpoint's metadata that has the name of its object, which lines of output begin with."""
_LONGEST: Final = 64 << 10  # characters of a line that waits for its end
_PACE: Final = 1.0  # seconds between two reports of one method
_log = logging.getLogger("fray.actor")


def in_task() -> bool:
    """Return whether this process is a task, whose output the cluster keeps."""
    return bool(os.environ.get("FRAY_JOB_ID"))


class _Tagged:
    """A text stream, where lines that a call writes begin with the name of its actor.

    What a call writes waits until its line is complete, so that lines of several calls are not mixed.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._begun: dict[tuple[int, str], str] = {}  # lines without an end, by who writes them

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write a text, as of a text stream."""
        call: Any = here.call or task_call.get()
        if call is None:
            return self._stream.write(text)
        tag: str = call.tag
        writer = (_writer(), tag)
        with self._lock:
            text, held = self._begun.pop(writer, "") + text, len(text)
            end = max(text.rfind("\n"), text.rfind("\r")) + 1
            if len(text) - end > _LONGEST:
                text, end = f"{text}\n", len(text) + 1
            if text[end:]:
                self._begun[writer] = text[end:]
        if end:
            self._stream.write("".join(f"[{tag}] {line}" for line in text[:end].splitlines(keepends=True)))
        return held

    def writelines(self, lines: Any) -> None:
        """Write texts, as of a text stream."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Write out what there is, as of a text stream; a line that has no end gets one."""
        call: Any = here.call or task_call.get()
        if call is not None:
            writer = (_writer(), call.tag)
            with self._lock:
                text = self._begun.pop(writer, "")
            if text:
                self._stream.write(f"[{call.tag}] {text}\n")
        self._stream.flush()

    def end(self) -> None:
        """Write the lines that have no end."""
        with self._lock:
            begun, self._begun = self._begun, {}
        for (_, tag), text in begun.items():
            self._stream.write(f"[{tag}] {text}\n")


def _writer() -> int:
    """Return what tells the writers of lines apart: the coroutine's task, or the thread."""
    asyncio = sys.modules.get("asyncio")
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:
        task = None
    return threading.get_ident() if task is None else id(task)


_installing = threading.Lock()


def tag_lines() -> None:
    """Have the lines that methods write begin with the name of their actor, from now on."""
    with _installing:
        for name in ("stdout", "stderr"):
            stream: Any = getattr(sys, name)
            if stream is None or isinstance(stream, _Tagged):
                continue
            tagged: Any = _Tagged(stream)
            setattr(sys, name, tagged)
            atexit.register(tagged.end)
            for handler in _handlers():
                if handler.stream is stream:
                    handler.setStream(tagged)


def _handlers() -> list[logging.StreamHandler[Any]]:
    """Return the handlers that log to streams."""
    loggers = [logging.root, *logging.root.manager.loggerDict.values()]
    found = [each for logger in loggers if isinstance(logger, logging.Logger) for each in logger.handlers]
    return [each for each in found if isinstance(each, logging.StreamHandler)]


class Reports:
    """Logs why the methods of an actor failed: of each method one failure a second at most."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[
            str, tuple[float, int]
        ] = {}  # when a method was reported, and how many were not since

    def raised(self, actor: str, method: str, traceback: str) -> None:
        """Log what a method raised, also if its caller does not want to know."""
        now = time.monotonic()
        with self._lock:
            last, omitted = self._last.get(method, (-_PACE, 0))
            if now - last < _PACE:
                self._last[method] = (last, omitted + 1)
                return
            self._last[method] = (now, 0)
        more = f" ({omitted} more of its failures are not shown)" if omitted else ""
        _log.warning("%s.%s raised an exception%s:\n%s", actor, method, more, traceback.rstrip())
