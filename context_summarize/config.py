"""`Config`: every setting, checked once, when it is made from the mapping that the host hands to `mount()`.

One error names all that is wrong: values that are not allowed, and values that contradict each other.
"""

from __future__ import annotations

import difflib
import functools
import logging
import math
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass, is_pydantic_dataclass

from context_summarize.errors import ConfigError

logger = logging.getLogger(__name__)

DEFAULT_BUDGET = 200_000
"""Tokens, where neither the request, the provider nor a setting names a budget."""
_NEAR = 0.85
"""Likeness from which on an unknown key is taken for a misspelt one: typing errors are above it, other modules' keys
below."""


# The text in an annotation completes the error: it follows the setting's name, and {!r} is the value.
_Flag = Annotated[bool, "must be true or false, got {!r}"]
_Filled = Annotated[str, Field(pattern=r"\S")]
_Name = Annotated[_Filled | None, "must be a name, got {!r}; leave it out for the default"]
_Above0 = Annotated[int | float, Field(gt=0, le=1)]
_Tokens = Annotated[int, Field(ge=1_000, le=10**9)]
_SHARE = "must be a share of the room above 0 and at most 1, got {!r}; 0.7 is 70 %"
_MOST_SUMMARIES = 0.28
"""Share of the room that summaries and thread may hold by default."""
_STRICT = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)
_Class = TypeVar("_Class", bound=type)


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _checked(cls: _Class) -> _Class:
    """Returns the class with a constructor that raises one `ConfigError` for all errors."""
    made = cls.__init__  # type: ignore[misc]

    @functools.wraps(made)
    def init(self: Any, /, **given: Any) -> None:
        wrong = dict[str, str]()
        try:
            made(self, **given)
        except ValidationError as error:
            wrong = _wrong_values(error, given)
            made(self, **{name: value for name, value in given.items() if name not in wrong})
        found = [text for names, text in _contradictions(self, given) if names.isdisjoint(wrong)]
        problems = [*wrong.values(), *found]
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

    summary_provider: _Name = None
    """Who writes the summaries: mount name, instance or module id; `offline` = code; none = the request's provider."""
    summary_model: _Name = None
    """Model of that provider for summaries; none = its own default."""
    summary_model_role: _Name = None
    """Role whose provider and model write the summaries, such as `fast`; it needs a routing module."""
    keep_recent: Annotated[int, Field(ge=0), "must be a whole number of 0 or more, got {!r}"] = 10
    """Newest messages that are never summarised; 0 = only the newest message or tool group."""
    compact_threshold: Annotated[
        _Above0 | _Tokens | tuple[_Above0, _Tokens],
        BeforeValidator(_as_tuple),
        "must be a share (0.65), tokens (90000; at least 1000) or both ([0.65, 90000]: the smaller counts), got {!r}",
    ] = (0.65, 90_000)
    """A compaction is made at this size: a share (0.65), tokens (90000), or the smaller of both."""
    prefetch: _Flag = True
    """False: no summary is made before a compaction is due."""
    max_tokens: Annotated[
        int | None,
        Field(ge=1000, le=10**9),
        "must be a whole number from 1000 to 1000000000, got {!r}; leave it out to use the provider's window",
    ] = None
    """Upper bound of the budget in tokens; none = no bound."""
    safety_margin: Annotated[int, Field(ge=0), "must be a whole number of 0 or more, got {!r}"] = 1000
    """Tokens of the window that stay free beside the answer."""
    auto_compact: _Flag = True
    """False: a compaction is made only by compact(), or if a request does not fit otherwise."""
    segment_tokens: Annotated[
        int | None,
        Field(ge=64),
        "must be a whole number of 64 or more, got {!r}; leave it out to derive it from the budget",
    ] = None
    """Tokens of a segment (bytes / 4); none = about an eighth of the room, 512 … 16,384."""
    summary_share: Annotated[Literal["auto"] | _Above0, _SHARE] = "auto"
    """Share for summaries and thread; above it old ones merge. Default: 0.28, less at a low threshold."""
    summary_role: Annotated[Literal["system", "user"], "must be system or user, got {!r}"] = "system"
    """Role of the rows with summaries and thread; `user` costs less with Anthropic's provider (hosts.md)."""
    notes_share: Annotated[int | float, Field(ge=0, le=0.5), "must be from 0 to 0.5, got {!r}; 0 means no thread"] = 0.1
    """Share for the thread, out of `summary_share`; beyond 16,000 tokens of room it becomes smaller."""
    prompts: Annotated[_Filled, "must be the name of a set or a folder, got {!r}; try 'default'"] = "default"
    """Prompts for the summaries: a set (`coding`), or a folder of your own."""
    shorten_tool_results: Annotated[
        Literal["auto"] | Annotated[int, Field(ge=1)] | None,
        "must be tokens (1 or more), none or 'auto', got {!r}; none means never",
    ] = "auto"
    """A compaction shortens tool results above this many tokens; none = never; `auto` = min(4000, room / 10)."""
    redact: Annotated[
        bool | tuple[str, ...], BeforeValidator(_as_tuple), "must be true, false or a list of patterns, got {!r}"
    ] = True
    """True takes secrets out of what is summarised; a list adds patterns of your own."""
    max_concurrency: Annotated[int, Field(ge=1), "must be a whole number of 1 or more, got {!r}"] = 4
    """Calls for summaries at a time."""
    wait_seconds: Annotated[
        int | float, Field(ge=0, le=10**9), "must be seconds (a number from 0 to 1000000000), got {!r}"
    ] = 60.0
    """Seconds that a request waits for late summaries; one call may take twice as long, at least 120."""
    cache: Annotated[
        _Filled | None, "must be memory, a file or an address, got {!r}; use memory to keep summaries in memory only"
    ] = None
    """`memory`, a file, or a store's address; none = a file in the user's Amplifier folder."""
    persistence: Annotated[
        Annotated[Mapping[Literal["path"], _Filled | Path], Field(min_length=1)] | None,
        "must be {{path: …}} with the name of a file, got {!r}; leave it out to keep the history in memory",
    ] = None
    """`{path: …}` keeps the history in a file; none = memory."""
    announce: _Flag = True
    """False: no line tells the user of compactions, long waits and failed summaries."""
    recall_tool: Annotated[Literal["auto"] | bool, "must be true, false or 'auto', got {!r}"] = "auto"
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
    key = key.lower()
    slips = [name for name in SETTINGS if name.startswith(f"{key}_") or _is_slip(key, name)]
    return next(iter([*difflib.get_close_matches(key, SETTINGS, n=1, cutoff=_NEAR), *slips]), None)


def _is_slip(key: str, name: str) -> bool:
    """Returns True if one letter is wrong or two are swapped: too much for the likeness of short names."""
    wrong = [pair for pair in zip(key, name, strict=False) if pair[0] != pair[1]]
    is_swap = len(wrong) == 2 and wrong[0] == wrong[1][::-1]
    return len(key) == len(name) and (len(wrong) == 1 or is_swap)


def _wrong_values(error: ValidationError, given: Mapping[str, Any]) -> dict[str, str]:
    """Returns an error for each setting that pydantic refuses: name → one sentence with value and remedy."""
    found: dict[str, str] = {}
    for item in error.errors(include_url=False):
        name = str(item["loc"][0])
        if name in found:  # pydantic reports each type of a union
            continue
        if name in SETTINGS:
            says = next(text for text in SETTINGS[name].metadata if isinstance(text, str))
            value = given[name]
            found[name] = f"{name} {says.format(value) if value is not None else says.replace('{!r}', 'none')}"
        else:
            meant = _nearest(name)
            remedy = f"did you mean {meant!r}?" if meant else f"known settings: {', '.join(sorted(SETTINGS))}"
            found[name] = f"unknown setting {name!r}; {remedy}"
    return found


def _contradictions(config: Config, given: Mapping[str, Any]) -> Iterator[tuple[set[str], str]]:
    """Yields settings that contradict each other: their names, and one sentence with their values and a remedy.

    Args:
        given: the settings that the session names; the others are defaults.
    """

    def shown(name: str) -> str:
        value = getattr(config, name)
        of = "" if name in given else " (the default)"
        return f"{name} {list(value) if isinstance(value, tuple) else value!r}{of}"

    for name in ("summary_provider", "summary_model"):
        if config.summary_model_role and getattr(config, name):
            text = f"{shown('summary_model_role')} and {shown(name)} both say who writes the summaries; leave one out"
            yield {"summary_model_role", name}, text
    share = _MOST_SUMMARIES if isinstance(config.summary_share, str) else config.summary_share
    if config.notes_share > max(share, SETTINGS["notes_share"].default):  # the default takes what there is
        of = f"{shown('summary_share')}{f', which is {share} at most' if share != config.summary_share else ''}"
        yield {"notes_share", "summary_share"}, f"{shown('notes_share')} is above {of}; the notes are a part of it"
    window, tokens = config.max_tokens, config.threshold_tokens
    due_at = min(config.threshold_share * (window or math.inf), tokens or math.inf)
    if (config.segment_tokens or 0) > due_at:
        at = f"the {int(due_at):,} tokens at which a compaction is due"
        names = [name for name in ("compact_threshold", "max_tokens") if getattr(config, name)]
        of = ", ".join(map(shown, names))
        text = f"{shown('segment_tokens')} is above {at} ({of}); leave it out to derive it"
        yield {"segment_tokens", *names}, text
    if window and config.compact_threshold == tokens and tokens > window:
        text = f"{shown('compact_threshold')} is above {shown('max_tokens')}; a share such as 0.65 fits any budget"
        yield {"compact_threshold", "max_tokens"}, text
    if config.safety_margin > (window or DEFAULT_BUDGET):
        limit = shown("max_tokens") if window else f"a window of {DEFAULT_BUDGET:,} tokens (the default)"
        yield {"safety_margin", "max_tokens"}, f"{shown('safety_margin')} is above {limit}; leave it out for 1000"
