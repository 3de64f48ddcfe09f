"""Settings of sibling context modules, read from their sources, with what takes their place here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

READ_ON = "2026-11-22"
"""The day on which the sources below were read."""

_NOTICE = "nothing: frames and marks stand where something is missing"
_FITS = "nothing: a request that does not fit is always reduced until it fits"
_NATIVE = "nothing: providers do not compact here"
_RECORDED = "nothing: compactions are recorded automatically"


@dataclass(frozen=True, slots=True)
class Sibling:
    """One context module: where its settings were read, and what each of them is called here."""

    source: str
    """Repository and commits; several where settings are known from branches that are not merged."""
    keys: Mapping[str, str]
    """Setting there → setting here, or why there is none. Settings with the same name and meaning are left out."""


SIBLINGS: Mapping[str, Sibling] = {
    "context-simple": Sibling(
        "microsoft/amplifier-module-context-simple 15ba711, ee15e50; branches 5cdbc62, 020bd8c",
        {
            "protected_recent": "keep_recent",
            "protected_tool_results": "keep_recent",
            "truncate_chars": "elide_tool_results",
            "max_tool_result_bytes": "elide_tool_results",
            "tool_result_budget_tokens": "elide_tool_results",
            "tool_result_budget_by_tool": "elide_tool_results",
            "tool_result_exempt_tools": "elide_tool_results",
            "tool_result_shape": "nothing: head and tail of a result are shown",
            "tool_result_spill_dir": "nothing: the history keeps the whole result",
            "token_meter": "nothing: the provider's own figures are used",
            "target_threshold": "target_usage",
            "max_tokens_fallback": "max_tokens",
            "output_reserve_fraction": "safety_margin",
            "compact_clear_at_least": "min_fold",
            "compact_max_consecutive_skips": _FITS,
            "replay_last_user_on_compaction": "nothing: the newest user message always stays verbatim",
            "summary_trigger": "prefetch_threshold",
            "summary_call_mode": "nothing: a summary is a request of its own",
            "summarization_model": "summary_model",
            "summarization_prompt_path": "prompts",
            "summarization_timeout_s": "request_timeout",
            "compaction_notice_enabled": _NOTICE,
            "compaction_notice_token_reserve": _NOTICE,
            "compaction_notice_verbosity": _NOTICE,
            "compaction_notice_min_level": _NOTICE,
        },
    ),
    "context-persistent": Sibling(
        "microsoft/amplifier-module-context-persistent 72678db",
        {
            "transcript_path": "persistence",
            "storage_path": "persistence",
            "memory_files": "nothing",
            "truncate_boundary": "elide_tool_results",
        },
    ),
    "context-managed": Sibling(
        "microsoft/amplifier-bundle-context-managed d11ba8c (rolling engine), 036d1e0 (boundary engine)",
        {
            "engine": "nothing: there is one engine",
            "verbatim_window_tokens": "keep_recent",
            "max_summary_tiers": "summary_share",
            "summary_target_tokens": "summary_tokens",
            "summary_max_output_tokens": "summary_tokens",
            "summary_max_source_chars": "segment_tokens",
            "summary_max_calls": "retry_attempts",
            "summary_retry_delay": "retry_attempts",
            "summary_timeout": "request_timeout",
            "summary_total_work_timeout": "request_timeout",
            "summary_reasoning_effort": "nothing: summary requests always ask for little reasoning",
            "separate_summary_provider": "summary_provider",
            "summarization_retries_before_fallback": "retry_attempts",
            "summarize_trigger": "prefetch_threshold",
            "large_result_threshold": "elide_tool_results",
            "pressure_warning": "nothing: the event context:pre_compact tells of it",
            "emergency_fallback": _FITS,
            "emergency_target_usage": _FITS,
            "durable_checkpoints": _RECORDED,
            "archive_recovery": _RECORDED,
            "native_compaction": _NATIVE,
            "native_compaction_max_output_tokens": _NATIVE,
            "native_compaction_timeout": _NATIVE,
            "native_min_new_tokens": _NATIVE,
        },
    ),
}

FOREIGN_KEYS: Mapping[str, str] = {key: here for sibling in SIBLINGS.values() for key, here in sibling.keys.items()}
"""All keys of sibling modules, with what replaces them here; a bundle that swaps modules still has them."""

FOREIGN_VALUES: Mapping[str, tuple[str, ...]] = {"compaction_strategy": ("progressive", "summary")}
"""Settings that have the same name in a sibling module and here: their values there, which are passed over too."""
