"""What a signal handler may set while the main thread is in the midst of anything."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from fray._latch import Latch
from waiting import ended

# The handler runs thousands of times, at whatever instruction the main thread is; with threading.Event in
# place of a Latch it ends in a deadlock within seconds, which faulthandler reports.
STORM = """
import faulthandler, random, signal, time
from fray._latch import Latch
faulthandler.dump_traceback_later(300, exit=True)
heard = broken = waits = 0
def handler(_, frame):
    global heard, broken
    heard += 1
    latch.set()
    if {raises} and frame.f_code.co_filename.endswith("_latch.py"):
        broken += 1
        raise KeyboardInterrupt
latch = Latch()
signal.signal(signal.SIGALRM, handler)
until = time.monotonic() + 3
while time.monotonic() < until or min(heard, waits) <= 100 or {raises} and not broken:
    latch = Latch()
    signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-6, 1e-4))
    try:
        while not latch.wait(0.00002):
            waits += 1
    except KeyboardInterrupt:
        latch.set()
        assert latch.wait(), "it was set"
assert heard > 100 and waits > 100 and bool(broken) == {raises}, (heard, waits, broken)
print("fine")
"""


@pytest.mark.parametrize("raises", [False, True])
def test_a_handler_may_interrupt_a_wait_anywhere(raises: bool) -> None:
    program = [sys.executable, "-c", STORM.format(raises=raises)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=600, check=False)
    assert (done.stdout, done.returncode) == ("fine\n", 0), done.stderr


def test_setting_ends_all_waits_and_a_wait_ends_with_its_time() -> None:
    latch, results = Latch(), []
    threads = [threading.Thread(target=lambda: results.append(latch.wait())) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert not latch.wait(0.01)
    assert not latch.is_set()
    began = time.monotonic()
    assert not latch.wait(-1)
    latch.set()
    latch.set()  # again, which changes nothing
    for thread in threads:
        ended(thread)
    assert results == [True] * 5
    assert latch.is_set()
    assert time.monotonic() >= began
