"""The result of a call, read out of its reply.

Which call that is, and who waits for it, is left to `future`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fray.rpc._wire import payload_of
from fray.rpc.codec import Codec, CodecError, CodecTooLargeError, decode_result
from fray.rpc.errors import ActorError, DeniedError, EncodingError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fray.rpc._outcome import Answer
    from fray.rpc._settings import Settings
    from fray.rpc.codec import ActorRef


def read_result(answer: Answer, settings: Settings, on_actor: Callable[[ActorRef], Any]) -> Any:
    """Return what a method returned; the answer has a reply without an error.

    Raises:
        ActorError: it cannot be read, though the method ran.
    """
    reply = answer.reply
    assert reply is not None
    pickles = settings.allow_pickle and bool(settings.identity)
    problem: ActorError
    try:
        if int(reply.codec) == Codec.PICKLE and not pickles:
            raise DeniedError("pickle is refused: allow_pickle and an identity are needed", ran=True)
        return decode_result(
            reply.codec,
            payload_of(answer.buffers, reply.result),
            answer.buffers,
            on_actor=on_actor,
            allow_pickle=pickles,
            memory=settings.max_message_bytes,
        )
    except DeniedError as err:
        problem = err
    except CodecTooLargeError as err:
        problem = TooLargeError(err.problem, ran=True)
    except CodecError as err:
        problem = EncodingError(f"the result cannot be read: {err.problem}", ran=True, argument=err.path)
    except Exception as err:  # such as of a reference that leads nowhere
        problem = EncodingError(f"the result cannot be read: {err}", ran=True)
    answer.buffers = ()  # the error's traceback refers to it
    raise problem
