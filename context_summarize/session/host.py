"""The host's side of a session: its providers, their limits and figures, its jobs, and its cancellation."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar, cast

from context_summarize.background import within
from context_summarize.config import OFFLINE, Config
from context_summarize.core.frames import NAME as RECALL
from context_summarize.host_types import Coordinator, Mounting, Provider, RoleResolver
from context_summarize.notes.prose import cut
from context_summarize.recall import tools
from context_summarize.redaction import Redact, traceback_of
from context_summarize.session.request_limits import RequestLimits, RequestOptions, own_limits
from context_summarize.session.system_prompt import SystemPrompt
from context_summarize.session.windows import Refusals, Windows, request_budget
from context_summarize.summaries.jobs import Target
from context_summarize.tokens.calibration import Meter
from context_summarize.tokens.counter import TokenCounter

logger = logging.getLogger(__name__)

T = TypeVar("T")

_PREFIX = "provider-"
_RESOLVER = "model_role_resolver"
_ROLE_SECONDS = 10.0
"""Seconds for resolving a role."""
_OPERATIONS = "context.active_operations"
"""A capability of loops with background jobs (amplifier-module-loop-live): a callable that lists the jobs."""
_MOST_OPERATIONS = 20
_FIELDS = ("tool", "status", "job_id", "job", "call_id", "call")


def is_child(coordinator: Coordinator | None) -> bool:
    """Returns True in the session of a sub-agent."""
    return isinstance(getattr(coordinator, "parent_id", None), str)


class Host:
    """Finds the providers of a session, computes the limits of requests, and holds what providers report."""

    def __init__(
        self, coordinator: Coordinator | None, config: Config, redact: Redact | None, tell: Callable[[str], None]
    ) -> None:
        if coordinator is not None and not hasattr(coordinator, "hooks"):
            got = type(coordinator).__name__
            raise TypeError(f"coordinator must be a session's, got {got}; settings are keywords, as in keep_recent=10")
        self._coordinator = coordinator
        self._tell = tell
        self._config = config
        self._provider: Provider | None = None
        """The provider that the host passed last."""
        self._warned = False
        self._of_role: Sequence[tuple[str, str | None]] | None = None
        """Providers and models that the role resolves to, the best first; None before the resolver is asked."""
        self._is_unreadable = False
        """True once the host's list of running jobs could not be read."""
        self._redact = redact
        self.windows = Windows(config, self.is_cancelled)
        self.counter = TokenCounter()
        self.meter = Meter()
        self.system = SystemPrompt(self.counter.count, config.redact, self.is_cancelled)
        session_id = getattr(coordinator, "session_id", None)
        self.session_id = session_id if isinstance(session_id, str) else None
        self.is_offline = config.summary_provider == OFFLINE
        """True if code writes the summaries."""
        self.refusals = Refusals(self.meter, config.safety_margin)
        self.last = RequestOptions()
        """The host's last budget; that of a `hard_fit` request is not kept."""
        self.served: RequestLimits | None = None
        """The limits of the last request."""

    def is_cancelled(self) -> bool:
        """Returns True while the host has cancelled what is running."""
        return bool(getattr(getattr(self._coordinator, "cancellation", None), "is_cancelled", False))

    def _mounted(self, kind: str = "providers") -> dict[str, Provider]:
        """Returns modules of this kind by name; none before the session is ready, or without a coordinator."""
        found = None if self._coordinator is None else self._coordinator.get(kind)
        return dict(found) if isinstance(found, Mapping) else {}

    def offers_recall(self) -> bool:
        """Returns True if the model has the tool `recall`; without a coordinator, if the setting says so."""
        if self._coordinator is None:
            return self._config.recall_tool is True
        return RECALL in self._mounted("tools")

    async def mount_recall(self) -> None:
        """Gives the model the tool `recall`: as set, else if one of the mounted models takes tools.

        A sub-agent gets it only if it is set, because whoever started the sub-agent has chosen its tools.
        """
        wanted = self._config.recall_tool
        if wanted == "auto":
            models = self._mounted().values()
            wanted = not is_child(self._coordinator) and (not models or any(map(_takes_tools, models)))
        if wanted and RECALL not in self._mounted("tools") and hasattr(self._coordinator, "mount"):
            await tools.mount(cast(Mounting, self._coordinator))  # a replay's takes no tools

    def seen(self, provider: Provider | None) -> Provider | None:
        """Remembers the provider passed, and returns it; else returns the last one, else the first mounted."""
        if provider is not None:
            self._provider = provider
        if self._provider is not None:
            return self._provider
        return next(iter(self._mounted().values()), None)

    def is_another(self, name: str) -> bool:
        """Returns True for the name of a mounted provider that is not the one seen last."""
        last, found = self.seen(None), find_provider(name, self._mounted())
        return getattr(last, "name", None) != name and found is not None and found is not last

    async def limits(self, wanted: RequestOptions) -> RequestLimits:
        """Returns the limits of the next request.

        Raises:
            TypeError, ValueError: as `request_budget`.
        """
        provider, system = self.seen(wanted.provider), self.system
        budget = await request_budget(self._config, wanted.token_budget, provider, self.windows)
        budget = await self.refusals.bounded(budget, provider, self.windows)
        await system.refresh(self._under_way())
        cap = self._config.threshold_tokens
        own_cap = None if cap is None else self.meter.own(cap)
        own_budget = max(1, self.meter.invert(budget))
        limits = RequestLimits(
            budget=budget,
            own=own_limits(self._config, own_budget, system.tokens, own_cap),
            correct=self.meter.correct,
        )
        if not wanted.hard_fit:  # its budget is for that request alone
            self.last, self.served = RequestOptions(token_budget=wanted.token_budget), limits
        return limits

    async def summariser(self) -> Target | None:
        """Returns the provider that writes summaries, with its model; None if code writes them.

        It is `summary_provider` if that is mounted, or the provider that the role resolves to. Else it is the provider
        of the request. If `summary_provider` is not mounted, `summary_model`, a model of it, is ignored.
        """
        if self.is_offline:
            return None
        provider, model, mounted, basis = self.seen(None), self._config.summary_model, self._mounted(), "request"
        if self._config.summary_provider is not None:
            # Without a host the provider of the request is the only one.
            named = find_provider(self._config.summary_provider, mounted or {_name_of(provider, {}): provider})
            if named is None and mounted:
                self.check_summariser()
            if named is None:
                model = None
            else:
                provider, basis = named, "summary_provider"
        elif (role := self._config.summary_model_role) and (found := await self._resolved(role, mounted)) is not None:
            (provider, model), basis = found, "summary_model_role"
        if provider is None:
            return None
        window = await self.windows.of(provider)
        room, output = (window.context, window.output or None) if window else (None, None)
        return Target(provider, _name_of(provider, mounted), model, room, output, basis)

    async def _resolved(self, role: str, mounted: Mapping[str, Provider]) -> tuple[Provider, str | None] | None:
        """Returns the first mounted candidate for the role; without one None, which is logged once.

        The resolver is asked once a session, as by amplifier-foundation's hooks-session-naming.
        """
        resolver = cast(RoleResolver | None, self._capability(_RESOLVER))
        if self._of_role is None and resolver is not None and mounted:
            try:
                found = await within(partial(resolver.resolve, role), _ROLE_SECONDS, self.is_cancelled)
                self._of_role = [(str(one.provider), one.model) for one in found]
            except Exception as error:  # noqa: BLE001 - logged without its secrets
                if self.is_cancelled():
                    return None
                self._of_role = []
                self._report_role(f"cannot be resolved: {traceback_of(error, self._config.redact)}")
        for name, model in self._of_role or ():
            if (provider := find_provider(name, mounted)) is not None:
                return provider, model
        if mounted:
            self._report_role(f"names no mounted provider (mounted: {', '.join(sorted(mounted))})")
        return None

    def _report_role(self, problem: str) -> None:
        role = self._config.summary_model_role
        self._report(f"summary_model_role {role!r} {problem}; the session's own provider writes the summaries")

    def _report(self, text: str) -> None:
        """Tells once, in the log and to the user, that no mounted module fits the settings for the summariser."""
        if not self._warned:
            self._warned = True
            logger.error("%s", text)
            if not is_child(self._coordinator):
                self._tell(text)

    def _capability(self, name: str) -> object:
        """Returns whatever a module has registered under this name; None without any."""
        look_up = getattr(self._coordinator, "get_capability", None)
        return look_up(name) if callable(look_up) else None

    def check_summariser(self) -> None:
        """Reports, once, that no mounted module fits the settings for the summariser."""
        if self._config.summary_model_role is not None and self._capability(_RESOLVER) is None:
            self._report_role(f"needs a module that resolves roles (capability {_RESOLVER}), and none is mounted")
        name, model, mounted = self._config.summary_provider, self._config.summary_model, self._mounted()
        if name is None or self.is_offline or find_provider(name, mounted) is not None:
            return
        known = ", ".join(sorted(mounted)) or "none"
        without = "" if model is None else f", without summary_model {model!r}, which is a model of {name!r}"
        own = f"the session's own provider writes the summaries{without}"
        self._report(f"summary_provider {name!r} is not mounted (mounted: {known}); {own}")

    def _under_way(self) -> str:
        """Returns a line on at most twenty jobs that run beside the conversation, without secrets; "" without any.

        If the host's list cannot be read, the line is empty, and the log says so once.
        """
        try:
            found = self._capability(_OPERATIONS)
            listed = found() if callable(found) else found
            jobs = [*map(_line, listed[:_MOST_OPERATIONS])] if isinstance(listed, list | tuple) else []
        except Exception as error:  # noqa: BLE001 - a host may raise anything
            if not self._is_unreadable:
                logger.warning("the host's list of active operations cannot be read: %s", type(error).__name__)
            self._is_unreadable = True
            return ""
        if not jobs:
            return ""
        line = f"[Under way, as the host says: {'; '.join(jobs)}]"
        return self._redact(line) if self._redact else line


def _name_of(provider: Provider | None, mounted: Mapping[str, Provider]) -> str:
    """Returns the name under which a provider is mounted, else its own."""
    own = getattr(provider, "name", None)
    names = (name for name, one in mounted.items() if one is provider)
    return next(names, own if isinstance(own, str) else type(provider).__name__)


def find_provider(name: str, mounted: Mapping[str, T]) -> T | None:
    """Returns the provider that a user's name refers to; None if there is none.

    The name is a mount name (the instance id, if there is one), a module id, or the provider's own `name`. A module id
    is compared with the mount names and with the providers' packages. Of several instances the first is taken.
    """
    short = name.removeprefix(_PREFIX)
    package = f"amplifier_module_{name.replace('-', '_')}"
    for place in (name, short):
        if place in mounted:
            return mounted[place]
    for provider in mounted.values():
        if type(provider).__module__.partition(".")[0] == package:
            return provider
    return next((one for one in mounted.values() if getattr(one, "name", None) in (name, short)), None)


def _takes_tools(provider: object) -> bool:
    """Returns False for a provider that lists what it can do, without tools."""
    try:
        info = getattr(provider, "get_info", object)()
        capabilities = getattr(info, "capabilities", None)
    except Exception:  # noqa: BLE001 - it may raise anything; when it is asked for its window, that is logged
        return True
    return not capabilities or "tools" in capabilities


def _line(operation: object) -> str:
    given = operation if isinstance(operation, Mapping) else {"job": operation}
    return cut(" ".join(str(given[name]) for name in _FIELDS if given.get(name)), 120)
