"""A speller in Python and the client of counter.hcl, whose counter is in Go: ../counter/main.go.

`python speller.py` runs both on this machine, with a counter in Python instead.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from fray.cluster import ClusterResolver, current_cluster
from fray.rpc import ActorContext, ActorHandle, errors
from fray.v2 import current_client

ONES = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
TENS = [
    "",
    "",
    "twenty",
    "thirty",
    "forty",
    "fifty",
    "sixty",
    "seventy",
    "eighty",
    "ninety",
]
TEXT = "the quick brown fox jumps over the lazy dog"
BURST = 20
"""Calls that are on their way at a time."""


class Speller:
    """Knows the English words of numbers, and counts words with the help of the counter."""

    def __init__(self, hyphen: str = "-") -> None:
        self.hyphen = hyphen

    def spell(self, number: int) -> str:
        """Return the words of a number below 1000."""
        if not 0 <= number < 1000:
            raise ValueError(f"{number} is not in 0 to 999")
        if number < 20:
            return ONES[number]
        if number < 100:
            tens, ones = divmod(number, 10)
            return TENS[tens] + (self.hyphen + ONES[ones] if ones else "")
        hundreds, rest = divmod(number, 100)
        return f"{ONES[hundreds]} hundred" + (f" and {self.spell(rest)}" if rest else "")

    def count(self, ctx: ActorContext, text: str) -> int:
        """Count the words of a text on the counter, and return what that shows now."""
        total: int = ctx.resolver.lookup("counter").increment(len(text.split()))
        return total


class Counter:
    """What ../counter/main.go is in Go."""

    def __init__(self, start: int = 0) -> None:
        self.value = start

    def increment(self, by: int) -> int:
        """Add to the counter and return what it shows."""
        if by < 0:
            raise ValueError(f"{by} is negative")
        self.value += by
        return self.value

    def describe(self, ctx: ActorContext) -> str:
        """Return what the counter shows, in words that it asks the speller for."""
        words: str = ctx.resolver.lookup("speller").spell(self.value)
        return words


def count_on(counter: ActorHandle, rounds: int) -> dict[str, int]:
    """Count one by one, and say what became of each call though the counter may be killed on the way.

    An increment must not run twice, so it is not declared idempotent. A call that is on its way when the
    counter dies, and may have run, ends with MaybeExecutedError; one that cannot have run waits for the next
    counter, which begins anew.
    """
    calls = returned = maybe = restarts = since = value = 0
    for i in range(rounds):
        for future in [counter.increment.remote(1) for _ in range(BURST)]:
            calls += 1
            try:
                now = future.result()
            except errors.MaybeExecutedError:
                maybe += 1
                continue
            if now <= value:
                restarts, since = restarts + 1, 0
            returned, since, value = returned + 1, since + 1, now
        print(f"round {i}: the counter shows {value}", flush=True)
    return {
        "calls": calls,
        "returned": returned,
        "maybe": maybe,  # returned nothing, and may have run
        "restarts": restarts,
        "since": since,  # of the returned, those of the last counter
        "value": value,
    }


def client(rounds: int = 3) -> dict[str, Any]:
    """Call both, each of which calls the other on the way."""
    resolver = ClusterResolver(current_cluster())
    counter, speller = (
        resolver.wait_for_actor("counter"),
        resolver.wait_for_actor("speller"),
    )
    totals = [speller.count(TEXT) for _ in range(3)]
    words = counter.describe()
    print(f"{totals[-1]} in words: {words}")

    # Calls of one caller run in order, also when the caller does not wait for one before it makes the next.
    futures = [counter.increment.remote(1) for _ in range(100)]
    in_order = [future.result() for future in futures]

    # What is raised in one language is an exception in the other.
    rejections = []
    for refused in (lambda: counter.increment(-1), lambda: speller.spell(1000)):
        try:
            refused()
        except errors.ApplicationError as err:
            rejections.append(err.message)
    counted = count_on(counter, rounds)
    print(counted)
    return {
        "totals": totals,
        "words": words,
        "in_order": in_order,
        "rejections": rejections,
        "counted": counted,
    }


def main() -> None:
    """Run on this machine."""
    fray = current_client()
    fray.create_actor(Counter, 15, name="counter")
    fray.create_actor(Speller, name="speller")
    print(client()["rejections"])


if __name__ == "__main__":
    if sys.argv[1:] == ["client"]:
        result = Path(os.environ["RESULT"])
        result.parent.mkdir(parents=True, exist_ok=True)
        result.write_text(json.dumps(client(int(os.environ["ROUNDS"]))))
    else:
        main()
