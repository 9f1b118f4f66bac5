"""A calculator: the tool that an agent may call, and a model that calls it for one operation at a time.

The model is a program, since a policy of this size learns no arithmetic. What
it shows is the conversation: messages, calls of tools, their results, an answer.
"""

import ast
import json
import operator
import secrets
from collections.abc import Callable

OPERATIONS: dict[str, Callable[[int, int], int]] = {"+": operator.add, "-": operator.sub, "*": operator.mul}
SYMBOLS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}
MOST = 10**12  # the largest number that the tool takes


def calculate(left: int, operator: str, right: int) -> int:
    """Works one operation out: +, - or * of two integers."""
    if operator not in OPERATIONS:
        raise ValueError(f"operator: want one of {' '.join(OPERATIONS)}, got {operator!r}")
    if max(abs(left), abs(right)) > MOST:
        raise ValueError(f"want numbers of at most {MOST}")
    return OPERATIONS[operator](left, right)


def reply(messages: list[dict], tools: list[dict]) -> tuple[dict, str]:
    """The model's next message, and why it ends: a call of the tool for the next operation, or the answer."""
    # What it has asked before are results in the order of the operations.
    question = next(m["content"] for m in messages if m["role"] == "user")
    results = [m["content"] for m in messages if m["role"] == "tool"]
    try:
        value = _work_out(ast.parse(question, mode="eval").body, results)
    except (SyntaxError, ValueError) as error:
        return {"role": "assistant", "content": f"I cannot work that out: {error}"}, "stop"
    if isinstance(value, int):
        return {"role": "assistant", "content": str(value)}, "stop"
    if not any(tool.get("function", {}).get("name") == "calculate" for tool in tools):
        return {"role": "assistant", "content": "I have no calculator."}, "stop"
    function = {"name": "calculate", "arguments": json.dumps(value)}
    call = {"id": f"call_{secrets.token_hex(8)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls"


def _work_out(expression: ast.expr, results: list[str]):
    """The value as far as results of earlier calls, which are consumed, give it; else the next operation."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, int):
        return expression.value
    if not isinstance(expression, ast.BinOp) or type(expression.op) not in SYMBOLS:
        raise ValueError("want integers, +, -, * and parentheses")
    left = _work_out(expression.left, results)
    if not isinstance(left, int):
        return left
    right = _work_out(expression.right, results)
    if not isinstance(right, int):
        return right
    if results:
        return int(results.pop(0))
    return {"left": left, "operator": SYMBOLS[type(expression.op)], "right": right}
