"""The result of a call, read out of its reply.

Which call that is, and who waits for it, is left to `future`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fray.rpc._transport.transfer import decoded_limit
from fray.rpc.codec import Codec, CodecError, CodecTooLargeError, decode_result
from fray.rpc.errors import ActorError, DeniedError, EncodingError, TooLargeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fray.rpc._transport.settings import Settings
    from fray.rpc._transport.wire import Buffer
    from fray.rpc.codec import ActorRef


def read_result(
    codec: int,
    data: Buffer,
    buffers: Sequence[memoryview],
    settings: Settings,
    on_actor: Callable[[ActorRef], Any],
    pickles: bool,
) -> Any:
    """Return what a method returned, or an item of its stream.

    Raises:
        ActorError: it cannot be read, though the method ran.
    """
    problem: ActorError
    try:
        if int(codec) == Codec.PICKLE and not pickles:
            raise DeniedError("pickle is refused: allow_pickle and an identity are needed", ran=True)
        return decode_result(
            codec,
            data,
            buffers,
            on_actor=on_actor,
            allow_pickle=pickles,
            memory=decoded_limit(settings.max_message_bytes, len(data) + sum(len(b) for b in buffers)),
        )
    except DeniedError as err:
        problem = err
    except CodecTooLargeError as err:
        problem = TooLargeError(err.problem, ran=True)
    except CodecError as err:
        problem = EncodingError(f"the result cannot be read: {err.problem}", ran=True, argument=err.path)
    except Exception as err:  # such as of a reference that leads nowhere
        problem = EncodingError(f"the result cannot be read: {err}", ran=True)
    data, buffers = b"", ()  # the traceback refers to them
    raise problem
