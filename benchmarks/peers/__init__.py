"""Contestants of the benchmarks: this module and its peers, each behind an adapter with one small interface.

Rows go in, and views come out, as Amplifier's loops store them, so the same code measures every contestant. An adapter
imports its peer when it is made: no peer is a dependency of the project.
"""

from __future__ import annotations

from typing import Any

from .agent_framework import AgentFramework, AgentFrameworkBudget
from .base import Contestant, Terms
from .hermes import Hermes, HermesTail
from .langchain import LangChain
from .ours import Ours
from .pydantic_ai import PydanticAI
from .strands import Strands


def variant(name: str, contestant: type[Any], **options: Any) -> type[Contestant]:
    """Returns a contestant with other options."""
    return type(name, (contestant,), {"options": options})


OURS: tuple[type[Contestant], ...] = (
    Ours,
    variant("OursFrugal", Ours, keep_recent=4, compact_threshold=0.22),
    variant("OursVerbatim", Ours, keep_recent=20, compact_threshold=0.8, shorten_tool_results=None),
)
PEERS: tuple[type[Contestant], ...] = (
    LangChain,
    Strands,
    PydanticAI,
    AgentFramework,
    AgentFrameworkBudget,
    Hermes,
    # with the settings that help them most: the summariser reads everything, or as much as possible is summarised
    variant("LangChainWhole", LangChain, trim_tokens_to_summarize=None),
    variant("StrandsMost", Strands, summary_ratio=0.8),
    variant("PydanticAIWhole", PydanticAI, tool_return_max_chars=None),
    variant("AgentFrameworkWhole", AgentFrameworkBudget, max_summary_input_tokens=None),
    HermesTail,
)
"""Other libraries: with their own defaults, then tuned."""
SWEPT: tuple[type[Contestant], ...] = (
    variant("Ours-45%", Ours, compact_threshold=0.45),
    variant("Ours-65%", Ours, compact_threshold=0.65),
    variant("Ours-80%", Ours, compact_threshold=0.8),
    variant("Ours-60k", Ours, compact_threshold=(0.65, 60_000)),
    variant("Ours-150k", Ours, compact_threshold=(0.8, 150_000)),
    variant("Ours-summaries-20%", Ours, summary_share=0.2),
    variant("Ours-summaries-24%", Ours, summary_share=0.24),
)
"""This module with other thresholds (a share, or a share and a bound in tokens), or with less room for summaries."""
FIRST = ("Ours", "PydanticAIWhole", "LangChainWhole")
"""Contestants in real sessions: this module, and the libraries that hold most there."""
BEST = ("LangChainWhole", "Hermes", "StrandsMost")
"""The three libraries that hold most of what later calls of coding sessions need, each by its best variant."""
EVERYONE = {one.__name__: one for one in (*OURS, *PEERS, *SWEPT)}
"""All contestants by name."""

__all__ = ["BEST", "EVERYONE", "FIRST", "OURS", "PEERS", "SWEPT", "Contestant", "Ours", "Terms", "variant"]
