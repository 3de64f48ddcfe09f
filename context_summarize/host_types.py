"""What a coordinator and a provider must have. What they may have beside it is asked for with `getattr`."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from typing import Any, Protocol

from amplifier_core.message_models import ChatRequest, ChatResponse
from amplifier_core.models import HookResult


class Hooks(Protocol):
    """The hooks of a session."""

    def emit(self, event: str, data: dict[str, Any], /) -> Awaitable[HookResult | None]:
        """Emits an event; returns what the hooks answer together."""


class Coordinator(Protocol):
    """The coordinator of a session. The modules' entry points get the kernel's own; a manager needs no more than this.

    It may also have `session_id`, `parent_id`, `cancellation`, `mount`, `get_capability` and `process_hook_result`.
    """

    @property
    def hooks(self) -> Hooks: ...

    def get(self, mount_point: str, /) -> object:
        """Returns what is mounted there: for "providers" and "tools" a mapping of modules by name."""


class Mounting(Coordinator, Protocol):
    """A coordinator that takes modules."""

    def mount(self, mount_point: str, module: object, name: str | None = None) -> Awaitable[None]:
        """Mounts a module under this name."""


class Candidate(Protocol):
    """A provider, by a name that users write, and a model of it."""

    provider: str
    model: str | None


class RoleResolver(Protocol):
    """The capability `model_role_resolver`, of amplifier-bundle-routing-matrix or another router."""

    def resolve(self, role: str, /) -> Awaitable[Iterable[Candidate]]:
        """Returns the candidates for a role, the best first. It may ask each provider for its models."""


class Provider(Protocol):
    """A provider of a model.

    It may also have `name`, `get_model_info`, `get_info`, `max_tokens` and `enable_response_chaining`.
    """

    def complete(self, request: ChatRequest, **options: Any) -> Awaitable[ChatResponse]:
        """Returns the model's answer. Options that a provider does not know are ignored."""
