"""What a host has under way beside the conversation: sub-agents and background jobs."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from context_summarize.notes.sentences import shortened

logger = logging.getLogger(__name__)

CAPABILITY = "context.active_operations"
"""Registered by loops with background jobs (amplifier-module-loop-live): a callable that lists them."""
_MOST = 20
_FIELDS = ("tool", "status", "job_id", "job", "call_id", "call")


class Operations:
    """Asks the host for what is under way.

    Args:
        coordinator: the host's; None without one.
    """

    def __init__(self, coordinator: Any | None) -> None:
        self._coordinator = coordinator

    def __call__(self) -> tuple[str, ...]:
        """One line an operation, at most twenty; nothing where the host has no list, or it cannot be read."""
        look_up = getattr(self._coordinator, "get_capability", None)
        try:
            found = look_up(CAPABILITY) if callable(look_up) else None
            listed = found() if callable(found) else found
            return tuple(map(_told, listed[:_MOST])) if isinstance(listed, list | tuple) else ()
        except Exception as error:  # noqa: BLE001 - a host may raise anything
            logger.warning("the host's list of active operations cannot be read: %s", type(error).__name__)
            return ()


def _told(operation: Any) -> str:
    given = operation if isinstance(operation, Mapping) else {"job": operation}
    parts = (str(given[name]) for name in _FIELDS if given.get(name))
    return shortened(" ".join(parts), 120)
