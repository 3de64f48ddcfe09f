"""Contestants of the benchmarks: this module and its peers behind one small interface, an adapter each.

Rows go in as Amplifier's loops store them and views come out as such rows, so that every contestant is measured by the
same code. Peers are imported when an adapter is made: none of them is a dependency of the project.
"""

from __future__ import annotations

from .agent_framework import AgentFramework, AgentFrameworkBudget, AgentFrameworkWhole
from .base import Contestant, Terms
from .hermes import Hermes, HermesTail
from .keep_last import KeepLast
from .langchain import LangChain, LangChainWhole
from .ours import Ours, ours_with
from .pydantic_ai import PydanticAI, PydanticAIWhole
from .strands import Strands, StrandsMost

OURS: tuple[type[Contestant], ...] = (
    Ours,
    ours_with("OursLean", profile="lean"),
    ours_with("OursFrugal", profile="frugal"),
)
PEERS: tuple[type[Contestant], ...] = (
    LangChain,
    Strands,
    PydanticAI,
    AgentFramework,
    AgentFrameworkBudget,
    Hermes,
    LangChainWhole,
    StrandsMost,
    PydanticAIWhole,
    AgentFrameworkWhole,
    HermesTail,
)
"""Other libraries: with their own defaults, then with the settings that help them most here."""
EVERYONE = {one.__name__: one for one in (*OURS, KeepLast, *PEERS)}
"""All that can be measured by name, with the plain baseline that keeps the newest rows and no summaries."""

__all__ = ["EVERYONE", "OURS", "PEERS", "Contestant", "KeepLast", "Ours", "PydanticAI", "Terms", "ours_with"]
