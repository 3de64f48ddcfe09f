"""`Config`: every setting, checked once, when it is made from the mapping that the host hands to `mount()`.

One error names all values that are not allowed; where all are, one names those that contradict each other.
"""

from __future__ import annotations

import difflib
import functools
import logging
import math
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass, is_pydantic_dataclass

from context_summarize.errors import ConfigError

logger = logging.getLogger(__name__)

DEFAULT_BUDGET = 200_000
"""Tokens, where neither the request, the provider nor a setting names a budget."""
_NEAR = 0.78
"""An unknown key this like a setting is a misspelt one: typing errors are above it, keys of other modules below."""
_Filled = Annotated[str, Field(pattern=r"\S")]
_Above0 = Annotated[int | float, Field(gt=0, le=1)]
_Tokens = Annotated[int, Field(ge=1_000, le=10**9)]
_LIST = Field(strict=False)
"""Takes a list as a tuple."""
_MOST_SUMMARIES = 0.28
"""Share of the room that summaries and thread may hold by default."""
_STRICT = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)
_Class = TypeVar("_Class", bound=type)


def _checked(cls: _Class) -> _Class:
    """Returns the class with a constructor that raises one `ConfigError` for all errors."""
    made = cls.__init__  # type: ignore[misc]

    @functools.wraps(made)
    def init(self: Any, /, **given: Any) -> None:
        try:
            made(self, **given)
            problems = [*_contradictions(self, given)]
        except ValidationError as error:
            problems = [*_wrong_values(error, given)]
        if len(problems) > 1:
            raise ConfigError("\n- ".join([f"{len(problems)} settings are wrong:", *problems]))
        if problems:
            raise ConfigError(problems[0])

    cls.__init__ = init  # type: ignore[misc]
    return cls


@_checked
@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Config:
    """The settings of one session; `Config.from_mapping` reads and checks them."""

    summary_provider: _Filled | None = None
    """Who writes the summaries: mount name, instance or module id; `offline` = code; none = the request's provider."""
    summary_model: _Filled | None = None
    """Model of that provider for summaries; none = its own default."""
    summary_model_role: _Filled | None = None
    """Role whose provider and model write the summaries, such as `fast`; it needs a routing module."""
    keep_recent: Annotated[int, Field(ge=0)] = 4
    """Newest messages that are never summarised; 0 = only the newest message or tool group."""
    compact_threshold: _Above0 | _Tokens | Annotated[tuple[_Above0, _Tokens], _LIST] = (0.5, 60_000)
    """A compaction is made at this size: a share (0.5), tokens (60000), or the smaller of both."""
    prefetch: bool = True
    """False: no summary is made before a compaction is due."""
    max_tokens: _Tokens | None = None
    """Upper bound of the budget in tokens; none = no bound."""
    safety_margin: Annotated[int, Field(ge=0)] = 1000
    """Tokens of the window that stay free beside the answer."""
    auto_compact: bool = True
    """False: a compaction is made only by compact(), or if a request does not fit otherwise."""
    segment_tokens: Annotated[int, Field(ge=64)] | None = None
    """Tokens of a segment (bytes / 4); none = about an eighth of the room, 512 … 16,384."""
    summary_share: Literal["auto"] | _Above0 = "auto"
    """Share for summaries and thread; above it old ones merge. Default: 0.28, less at a low threshold."""
    summary_role: Literal["system", "user"] = "system"
    """Role of the rows with summaries and thread; `user` costs less with Anthropic's provider (hosts.md)."""
    notes_share: Annotated[int | float, Field(ge=0, le=0.5)] = 0.1
    """Share for the thread, out of `summary_share`; beyond 16,000 tokens of room it becomes smaller."""
    prompts: _Filled = "default"
    """Prompts for the summaries: a set (`coding`), or a folder of your own."""
    shorten_tool_results: Literal["auto"] | Annotated[int, Field(ge=1)] | None = "auto"
    """A compaction shortens tool results above this many tokens; none = never; `auto` = min(4000, room / 10)."""
    redact: bool | Annotated[tuple[str, ...], _LIST] = True
    """True takes secrets out of what is summarised; a list adds patterns of your own."""
    max_concurrency: Annotated[int, Field(ge=1)] = 4
    """Calls for summaries at a time."""
    wait_seconds: Annotated[int | float, Field(ge=0, le=10**9)] = 60.0
    """Seconds that a request waits for late summaries; one call may take twice as long, at least 120."""
    cache: _Filled | None = None
    """`memory`, a file, or a store's address; none = a file in the user's Amplifier folder, without a host memory."""
    persistence: Annotated[Mapping[Literal["path"], _Filled | Path], Field(min_length=1)] | None = None
    """`{path: …}` keeps the history in a file; none = memory."""
    announce: bool = True
    """False: no line tells the user of compactions, long waits and failed summaries."""
    recall_tool: Literal["auto"] | bool = "auto"
    """The tool `recall`, which reads summarised messages back: false = not mounted; `auto` = not in sub-agents."""

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any] | None) -> Config:
        """Reads the mapping that a host hands over; `None` and `{}` give the defaults.

        Unknown keys are ignored with one warning that names them: context modules are swapped with their settings. A
        `compact_threshold` of `None` counts as not given.

        Raises:
            ConfigError: misspelt keys, wrong values, and values that contradict each other, all in one text.
        """
        config = {} if config is None else config
        if not isinstance(config, Mapping):
            raise ConfigError(f"config must be a mapping of settings, got {type(config).__name__}")
        given = {key: value for key, value in config.items() if _nearest(str(key))}
        if unknown := [str(key) for key in config if key not in given]:
            logger.warning(
                "unknown settings are ignored: %s; known settings: %s", ", ".join(unknown), ", ".join(sorted(SETTINGS))
            )
        if given.get("compact_threshold", 0) is None:
            del given["compact_threshold"]  # a bundle writes null over the threshold that another module was given
        return cls(**given)

    @cached_property
    def threshold_share(self) -> float:
        """Share of the room at which a compaction is made."""
        given = self.compact_threshold
        share = given[0] if isinstance(given, tuple) else given
        return share if share <= 1 else 0.9  # at the latest, if the threshold is given in tokens alone

    @cached_property
    def threshold_tokens(self) -> int | None:
        """Tokens at which a compaction is made at the latest; None = only the share counts."""
        given = self.compact_threshold
        tokens = given[1] if isinstance(given, tuple) else given
        return int(tokens) if tokens > 1 else None

    @cached_property
    def target_usage(self) -> float:
        """Share of the room in use that a compaction aims at."""
        return self.threshold_share * 0.3

    @cached_property
    def share_of_summaries(self) -> float:
        """Share of the room that summaries and thread together may hold before old ones merge."""
        given = self.summary_share
        return min(_MOST_SUMMARIES, 0.75 * self.threshold_share) if isinstance(given, str) else given


OFFLINE = "offline"
"""The summary provider that is no provider: code writes the summaries."""
SETTINGS = Config.__pydantic_fields__ if is_pydantic_dataclass(Config) else {}
"""Pydantic's description of each setting; `description` is its text for the documentation."""


def _nearest(key: str) -> str | None:
    """Returns the setting that a misspelt key means; None for a key of somebody else."""
    return next(iter(difflib.get_close_matches(key.lower(), SETTINGS, n=1, cutoff=_NEAR)), None)


def _wrong_values(error: ValidationError, given: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence for each setting that pydantic refuses, with its value and its meaning."""
    reasons: dict[str, list[str]] = {}
    for item in error.errors(include_url=False):  # one for each type of a union
        reasons.setdefault(str(item["loc"][0]), []).append(re.sub(r"^.*? should", "must", item["msg"]))
    for name, texts in reasons.items():
        if name in SETTINGS:
            got = "none" if given[name] is None else repr(given[name])
            yield f"{name} {', or '.join(dict.fromkeys(texts))}, got {got}. {SETTINGS[name].description}"
        else:
            meant = _nearest(name)
            remedy = f"did you mean {meant!r}?" if meant else f"known settings: {', '.join(sorted(SETTINGS))}"
            yield f"unknown setting {name!r}; {remedy}"


def _contradictions(config: Config, given: Mapping[str, Any]) -> Iterator[str]:
    """Yields a sentence for each contradiction between settings, with their values and a remedy.

    Args:
        given: the settings that the session names; the others are defaults.
    """

    def shown(name: str) -> str:
        value = getattr(config, name)
        of = "" if name in given else " (the default)"
        return f"{name} {list(value) if isinstance(value, tuple) else value!r}{of}"

    for name in ("summary_provider", "summary_model"):
        if config.summary_model_role and getattr(config, name):
            yield f"{shown('summary_model_role')} and {shown(name)} both say who writes the summaries; leave one out"
    share = _MOST_SUMMARIES if isinstance(config.summary_share, str) else config.summary_share
    if config.notes_share > max(share, SETTINGS["notes_share"].default):  # the default takes what there is
        of = f"{shown('summary_share')}{f', which is {share} at most' if share != config.summary_share else ''}"
        yield f"{shown('notes_share')} is above {of}; the notes are a part of it"
    window, tokens = config.max_tokens, config.threshold_tokens
    due_at = min(config.threshold_share * (window or math.inf), tokens or math.inf)
    if (config.segment_tokens or 0) > due_at:
        of = ", ".join(shown(name) for name in ("compact_threshold", "max_tokens") if getattr(config, name))
        at = f"the {int(due_at):,} tokens at which a compaction is due ({of})"
        yield f"{shown('segment_tokens')} is above {at}; leave it out to derive it"
    if window and config.compact_threshold == tokens and tokens > window:
        yield f"{shown('compact_threshold')} is above {shown('max_tokens')}; a share such as 0.5 fits any budget"
    if config.safety_margin > (window or DEFAULT_BUDGET):
        limit = shown("max_tokens") if window else f"a window of {DEFAULT_BUDGET:,} tokens (the default)"
        yield f"{shown('safety_margin')} is above {limit}; leave it out for 1000"
