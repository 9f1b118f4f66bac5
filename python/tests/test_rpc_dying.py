"""Servers that hang or are killed while a method runs."""

from __future__ import annotations

import pytest

from dying import dying
from fray.rpc import ConnectionSettings, FixedResolver
from fray.rpc.errors import MaybeExecutedError


def test_a_call_of_a_server_that_hangs_does_not_wait_for_another_one() -> None:
    settings = ConnectionSettings(keepalive=1, patience=1)
    with dying() as address:
        # Without end: what ends the call is the silence, not that its actor is not found.
        actor = FixedResolver(address, settings=settings).handle("dying").options(resolve_timeout=1e6)
        with pytest.raises(MaybeExecutedError):
            actor.stop.remote().result(300)


def test_results_from_before_a_crash_arrive() -> None:
    with dying() as address:
        actor = FixedResolver(address).lookup("dying")
        assert actor.value(0) == 0
        before = [actor.value.remote(n) for n in range(100)]
        death = actor.die.remote()
        after = [actor.value.remote(n) for n in range(100)]
        assert [future.result(300) for future in before] == list(range(100))
        assert isinstance(death.exception(300), MaybeExecutedError)
        assert all(isinstance(future.exception(300), MaybeExecutedError) for future in after)
