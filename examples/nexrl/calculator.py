"""The task of the agent: work out an expression of three numbers with a calculator.

The calculator does one operation a call.

`python calculator.py DIRECTORY` writes its tasks: sums.jsonl and, of other
expressions, sums_validate.jsonl.
"""

import itertools
import json
import operator
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

OPERATIONS: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
TIGHT = {"+": 1, "-": 1, "*": 2}
MOST = 10**12  # the largest number that the tool takes
TASKS, VALIDATION = 640, 100


def calculate(left: int, operator: str, right: int) -> int:
    """Works one operation out: +, - or * of two integers."""
    if operator not in OPERATIONS:
        raise ValueError(f"operator: want one of {' '.join(OPERATIONS)}, got {operator!r}")
    if max(abs(left), abs(right)) > MOST:
        raise ValueError(f"want numbers of at most {MOST}")
    return OPERATIONS[operator](left, right)


@dataclass
class Expression:
    """What is left of an expression: numbers, and the operators between them."""

    numbers: list[int]
    operators: list[str]

    @classmethod
    def parse(cls, text: str) -> "Expression":
        """Read "12 + 3 * 4": integers and operators in turn, with blanks between. Else a ValueError."""
        words = text.split()
        numbers, operators = [int(word) for word in words[::2]], words[1::2]
        if len(numbers) != len(operators) + 1 or not set(operators) <= set(OPERATIONS):
            raise ValueError(f"want integers with one of {' '.join(OPERATIONS)} between, got {text!r}")
        return cls(numbers, operators)

    def operation(self, place: int) -> tuple[int, str, int]:
        return self.numbers[place], self.operators[place], self.numbers[place + 1]

    def replace(self, place: int, result: int) -> None:
        """Put the result of an operation in its place."""
        self.numbers[place : place + 2] = [result]
        del self.operators[place]

    def value(self) -> int:
        """The right answer: what binds tighter comes first, else what is on the left."""
        rest = Expression(list(self.numbers), list(self.operators))
        while rest.operators:
            place = max(range(len(rest.operators)), key=lambda i: (TIGHT[rest.operators[i]], -i))
            rest.replace(place, calculate(*rest.operation(place)))
        return rest.numbers[0]


def split() -> tuple[list[str], list[str]]:
    """Expressions to train with, and others to validate with.

    The two orders in which one may be worked out give different values.
    """
    rng = random.Random(11)
    found: dict[str, None] = {}
    for first, second in itertools.cycle(itertools.product(OPERATIONS, repeat=2)):
        left, middle, right = (rng.randint(2, 20) for _ in range(3))
        other = calculate(left, first, calculate(middle, second, right))
        if other == calculate(calculate(left, first, middle), second, right):
            continue
        found[f"{left} {first} {middle} {second} {right}"] = None
        if len(found) == TASKS + VALIDATION:
            break
    return list(found)[VALIDATION:], list(found)[:VALIDATION]


def write(directory: Path) -> None:
    for name, expressions in zip(("sums", "sums_validate"), split(), strict=True):
        lines = [
            json.dumps({"prompt": text, "answer": Expression.parse(text).value()}) for text in expressions
        ]
        (directory / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
