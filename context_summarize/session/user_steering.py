"""`UserSteering`: the methods by which a user takes a compaction back and pins messages."""

from __future__ import annotations

from collections.abc import Iterable

from context_summarize.session.parts import Parts


class UserSteering:
    """The part of a context manager that carries out a user's wishes about the view; see `Steering`."""

    _parts: Parts

    async def _loaded(self) -> None:
        """Until the history is there."""
        raise NotImplementedError

    async def undo(self) -> int:
        """Take the last compaction back without a call; the tokens that the request grows by.

        Raises:
            SteeringError: there is no compaction, or the earlier view does not fit; nothing has changed.
        """
        await self._loaded()
        return await self._parts.requests.steer(self._parts.steering.undone)

    async def pin(self, messages: int | Iterable[int]) -> tuple[int, ...]:
        """Keep messages verbatim from the next compaction on; the numbers of all pinned ones. See `Steering.pinned`."""
        await self._loaded()
        return await self._parts.requests.steer(self._parts.steering.pinned(messages))

    async def unpin(self, messages: int | Iterable[int] | None = None) -> tuple[int, ...]:
        """Let go of these pins, or of all; the numbers of those left. See `Steering.unpinned`."""
        await self._loaded()
        return await self._parts.requests.steer(self._parts.steering.unpinned(messages))
