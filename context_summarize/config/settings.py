"""`Config`: every setting, checked once, when it is made from the mapping that the host hands to `mount()`."""

from __future__ import annotations

import difflib
import functools
import logging
from collections.abc import Mapping
from os import PathLike
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import ConfigDict, Field, PlainValidator, ValidationError
from pydantic.dataclasses import dataclass, is_pydantic_dataclass

from context_summarize.config.profiles import DEFAULT_PROFILE, PROFILE_NAMES, Profile, with_profile
from context_summarize.errors import ConfigError

logger = logging.getLogger(__name__)

_AT_THE_LATEST = 0.9
"""Share of the budget at which a compaction is made if the threshold is given in tokens alone."""
_LEAST_TOKENS = 1_000
"""Of a threshold in tokens."""
_NEAR = 0.85
"""Likeness from which on an unknown key is taken for a misspelt one: typing errors are above it, other modules' keys
below."""
# The text in an annotation completes the error: it follows the setting's name, and {!r} is the value.
ToolKind = Literal["write", "edit", "delete", "command", "none"]
"""What a tool does; `none` leaves nothing to be told, as reading and searching do."""

_Flag = Annotated[bool, "must be true or false, got {!r}"]
_Filled = Annotated[str, Field(pattern=r"\S")]
_Name = Annotated[_Filled | None, "must be a name, got {!r}; leave it out for the default"]
_SHARE = "must be a share of the budget above 0 and at most 1, got {!r}; 0.7 is 70 %"
_Share = Annotated[int | float, Field(gt=0, le=1), _SHARE]
_SECONDS = "must be seconds (a finite number of 0 or more), got {!r}"
_STRICT = ConfigDict(strict=True, extra="forbid", use_attribute_docstrings=True)
_Class = TypeVar("_Class", bound=type)


def _check_persistence(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, Mapping) or set(value) != {"path"}:
        raise ConfigError(f"persistence must be {{path: …}}, got {value!r}; leave it out to keep it in memory")
    if not isinstance(path := value["path"], str | PathLike) or not str(path).strip():
        raise ConfigError(
            f"persistence.path must name a file, got {path!r}; leave persistence out to keep it in memory"
        )
    return value


def _check_threshold(value: Any) -> Any:
    """A share, tokens, or a list of both, as they were given."""
    parts = tuple(value) if isinstance(value, list | tuple) else (value,)
    wrong = [one for one in parts if isinstance(one, bool) or not isinstance(one, int | float) or not _is_part(one)]
    if wrong or len(parts) not in (1, 2) or (len(parts) == 2 and not parts[0] <= 1 < parts[1]):
        raise ValueError(value)
    return parts if len(parts) == 2 else parts[0]


def _is_part(value: float) -> bool:
    """Whether this is a share, or whole tokens."""
    return 0 < value <= 1 or (isinstance(value, int) and value >= _LEAST_TOKENS)


def _threshold(value: float | tuple[float, ...]) -> tuple[float, int | None]:
    """(share, tokens) of a threshold."""
    if isinstance(value, tuple):
        return value[0], int(value[1])
    return (value, None) if value <= 1 else (_AT_THE_LATEST, int(value))


def _with_profiles(cls: _Class) -> _Class:
    """The class with a constructor that takes in a profile, and raises `ConfigError` instead of `ValidationError`."""
    checked = cls.__init__  # type: ignore[misc]

    @functools.wraps(checked)
    def init(self: Any, **given: Any) -> None:
        try:
            checked(self, **with_profile(given))
        except ValidationError as error:
            raise _in_our_words(error, given) from None

    cls.__init__ = init  # type: ignore[misc]
    return cls


def _in_our_words(error: ValidationError, given: Mapping[str, Any]) -> ConfigError:
    first = error.errors(include_url=False)[0]
    raised = first.get("ctx", {}).get("error")
    if isinstance(raised, ConfigError):
        return raised
    name = str(first["loc"][0])
    if name not in SETTINGS:
        return ConfigError(f"unknown setting {name!r}; known settings: {', '.join(sorted(SETTINGS))}")
    says = next(item for item in SETTINGS[name].metadata if isinstance(item, str))
    value = given[name]
    return ConfigError(f"{name} {says.format(value) if value is not None else says.replace('{!r}', 'none')}")


@_with_profiles
@dataclass(frozen=True, slots=True, kw_only=True, config=_STRICT)
class Config:
    """The settings of one session; `Config.from_mapping` reads and checks them."""

    profile: Annotated[Profile, f"must be one of {', '.join(PROFILE_NAMES)}, got {{!r}}"] = DEFAULT_PROFILE
    """A set of settings under one name: `balanced`, `lean`, `frugal` or `verbatim`. Other keys override it."""
    summary_provider: _Name = None
    """Mount name, instance id or module id of the provider that writes the summaries; none = that of the request."""
    summary_model: _Name = None
    """Model of that provider for summaries; none = the provider's own default."""
    keep_recent: Annotated[
        int,
        Field(ge=0),
        "must be a whole number of 0 or more, got {!r}; use 0 to keep only the newest message or tool group",
    ] = 10
    """Newest rows that stay verbatim (count, 0 or more; 0 = none beyond the newest message or tool group)."""
    compact_threshold: Annotated[
        int | float | tuple[int | float, ...],
        PlainValidator(_check_threshold),
        "must be a share (0.65), tokens (150000) or both ([0.65, 150000]: the smaller one counts), got {!r}",
    ] = (0.65, 100_000)
    """Where a compaction is made: a share of the budget (0.65), tokens (150000), or the smaller of both."""
    target_usage: Annotated[
        int | float | None, Field(gt=0, le=1), "must be a share of the budget above 0 and at most 1, or none, got {!r}"
    ] = None
    """Share of the budget in use after a compaction (above 0, below compact_threshold); none = a third of that."""
    prefetch: _Flag = True
    """False: no summary is made in the background, before a compaction is due."""
    max_tokens: Annotated[
        int | None,
        Field(ge=1),
        "must be a whole number of 1 or more, got {!r}; leave it out to use the provider's window",
    ] = None
    """Upper bound of the budget in tokens; none = what the provider's window gives."""
    safety_margin: Annotated[int, Field(ge=0), "must be a whole number of 0 or more, got {!r}; use 0 for no margin"] = (
        1000
    )
    """Tokens left free beside the provider's max_output_tokens."""
    auto_compact: _Flag = True
    """False: compactions are made only by compact(), and where a request does not fit otherwise."""
    compaction_strategy: Annotated[Literal["summarize", "truncate"], "must be 'summarize' or 'truncate', got {!r}"] = (
        "summarize"
    )
    """`summarize`, or `truncate`: fallback summaries, made by code without a provider call."""
    preserve_system: _Flag = True
    """False: stored system rows leave the view when their range is summarised."""
    segment_tokens: Annotated[
        int | None,
        Field(ge=64),
        "must be a whole number of 64 or more, got {!r}; leave it out to derive it from the budget",
    ] = None
    """Length of a segment in tokens (bytes / 4), at least 64; none = a power of two near budget / 8, 512 … 16,384."""
    summary_tokens: Annotated[
        int | None,
        Field(ge=16),
        "must be a whole number of 16 or more, got {!r}; leave it out to derive it from the segment",
    ] = None
    """Length asked of a summary in tokens, at least 16; none = a sixteenth of a segment, 64 … 1,600."""
    summary_share: _Share = 0.28
    """Share of the budget that all summaries together may hold before old ones merge."""
    fan_in: Annotated[int, Field(ge=2), "must be a whole number of 2 or more, got {!r}; the default is 6"] = 6
    """Neighbouring summaries that one merge joins (2 or more)."""
    notes_share: Annotated[int | float, Field(ge=0, le=0.5), "must be from 0 to 0.5, got {!r}; 0 is none"] = 0.1
    """Share of the budget for the row of notes that code writes; out of `summary_share`, and at most half of it."""
    action_tools: Annotated[
        Mapping[str, ToolKind] | None,
        f"must map tool names to one of {', '.join(get_args(ToolKind))}, got {{!r}}",
    ] = None
    """What your own tools do, by name, such as `{deploy: command, save_note: write}`; none = by their arguments."""
    summary_role: Annotated[Literal["system", "user"], "must be 'system' or 'user', got {!r}"] = "system"
    """Role of a summary's row: `system`, or `user` for hosts that cache the system block whole."""
    prompts: Annotated[_Filled, "must be the name of a set or a folder, got {!r}; try 'default'"] = "default"
    """Name of a set in prompts/, or path to a folder of templates."""
    elide_tool_results: Annotated[
        Literal["auto"] | Annotated[int, Field(ge=1)] | None,
        "must be tokens (1 or more), none or 'auto', got {!r}; none is never",
    ] = "auto"
    """A compaction shortens tool results above this many tokens; none = never; default: min(4000, budget / 10)."""
    redact: Annotated[bool | tuple[str, ...], "must be true, false or a list of patterns, got {!r}"] = True
    """True: secrets of known formats are taken out of what is summarised; false: not; a list: further patterns."""
    max_concurrency: Annotated[
        int, Field(ge=1), "must be a whole number of 1 or more, got {!r}; use 1 for one call at a time"
    ] = 4
    """Provider calls for summaries under way at once."""
    wait_seconds: Annotated[int | float, Field(ge=0, lt=float("inf")), _SECONDS] = 60.0
    """Seconds that a request waits for late summaries."""
    request_timeout: Annotated[int | float, Field(gt=0, lt=float("inf")), _SECONDS] = 120.0
    """Seconds that one provider call for a summary may take."""
    cache_ttl_seconds: Annotated[
        int | float | None,
        Field(gt=0, lt=float("inf")),
        "must be seconds (a finite number above 0) or none, got {!r}; none = off",
    ] = None
    """Seconds that the provider's prompt cache lives: a longer pause allows an early compaction; none = off."""
    retry_attempts: Annotated[int, Field(ge=1), "must be a whole number of 1 or more, got {!r}; use 1 for no retry"] = 3
    """Attempts for one summary when the provider's error is retryable."""
    cache: Annotated[
        _Filled | None, "must be memory, a file or an address, got {!r}; use memory to keep summaries in memory only"
    ] = None
    """`memory`, a file, or a store's address; none = a file in the user's Amplifier folder."""
    persistence: Annotated[Mapping[str, Any] | None, PlainValidator(_check_persistence)] = None
    """`{path: …}` keeps the history in a file; none = memory."""
    recall_tool: _Flag = False
    """True mounts a tool that reads summarised rows back."""
    context_tool: _Flag = False
    """True mounts a tool by which the user may compact, undo, pin and ask how full the window is, through the model."""
    debug: _Flag = False
    """True emits `context:message_added:debug` for every row."""

    @property
    def threshold_share(self) -> float:
        """Share of the budget at which a compaction is made."""
        return _threshold(self.compact_threshold)[0]

    @property
    def threshold_tokens(self) -> int | None:
        """Tokens at which one is made at the latest; None = whatever the share gives."""
        return _threshold(self.compact_threshold)[1]

    def __post_init__(self) -> None:
        if self.target_usage is not None and self.target_usage >= self.threshold_share:
            of = "" if self.profile == DEFAULT_PROFILE else f" (see profile {self.profile!r})"
            raise ConfigError(
                f"target_usage must be below compact_threshold, got {self.target_usage!r} and "
                f"{self.threshold_share!r}{of}; a compaction must free something"
            )

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any] | None) -> Config:
        """Read the mapping that a host hands over; `None` and `{}` give the defaults.

        Keys that are not known are ignored with one warning that names them all: context modules are swapped with their
        settings.

        Raises:
            ConfigError: a key that is near a known one, or a wrong value.
        """
        if config is None:
            return cls()
        if not isinstance(config, Mapping):
            raise ConfigError(f"config must be a mapping of settings, got {type(config).__name__}")
        given = {key: _as_meant(key, value) for key, value in config.items() if key in SETTINGS}
        unknown = [str(key) for key in config if key not in SETTINGS]
        for key in unknown:
            if near := difflib.get_close_matches(key.lower(), SETTINGS, n=1, cutoff=_NEAR):
                raise ConfigError(f"unknown setting {key!r}; did you mean {near[0]!r}?")
        if unknown:
            logger.warning(
                "unknown settings are ignored: %s; docs/migration.md says what replaces the settings of other modules",
                ", ".join(unknown),
            )
        return cls(**given)


SETTINGS = Config.__pydantic_fields__ if is_pydantic_dataclass(Config) else {}
"""What pydantic knows of each setting; `description` is its text for the documentation."""

_MAY_BE_NONE = (
    "target_usage",
    "cache_ttl_seconds",
    "max_tokens",
    "segment_tokens",
    "summary_tokens",
    "elide_tool_results",
)
"""Settings that may be off and take no name as a value."""


def _as_meant(name: str, value: Any) -> Any:
    """In YAML, none is written `null`; `none` is a text there, and is taken for the same."""
    if name in _MAY_BE_NONE and isinstance(value, str) and value.casefold() == "none":
        return None
    return tuple(value) if name == "redact" and isinstance(value, list) else value
