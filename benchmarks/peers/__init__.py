"""Contestants of the benchmarks: this module and its peers behind one small interface, an adapter each.

Rows go in as Amplifier's loops store them and views come out as such rows, so that every contestant is measured by the
same code. Peers are imported when an adapter is made: none of them is a dependency of the project.
"""

from __future__ import annotations

from .agent_framework import AgentFramework, AgentFrameworkBudget, AgentFrameworkWhole
from .base import Clock, Contestant, DoesNotFit, LoopClock, Row, Terms, VirtualClock, text_of
from .hermes import Hermes, HermesTail
from .keep_last import KeepLast
from .langchain import LangChain, LangChainWhole
from .ours import Ours, OursUserRole, ours_with
from .pydantic_ai import PydanticAI, PydanticAIWhole
from .strands import Strands, StrandsMost

AS_THEY_COME: tuple[type[Contestant], ...] = (
    LangChain,
    Strands,
    PydanticAI,
    AgentFramework,
    AgentFrameworkBudget,
    Hermes,
)
"""Peers with their own defaults; agent-framework's twice, for alone it counts rows."""

TUNED: tuple[type[Contestant], ...] = (LangChainWhole, StrandsMost, PydanticAIWhole, AgentFrameworkWhole, HermesTail)
"""Peers with the settings that help them most in this benchmark."""

PEERS: tuple[type[Contestant], ...] = (*AS_THEY_COME, *TUNED)
EVERYONE: tuple[type[Contestant], ...] = (Ours, OursUserRole, KeepLast, *PEERS)
"""All that can be measured, with this module and the plain baseline."""

__all__ = [
    "AS_THEY_COME",
    "EVERYONE",
    "PEERS",
    "TUNED",
    "Clock",
    "Contestant",
    "DoesNotFit",
    "Hermes",
    "KeepLast",
    "LoopClock",
    "Ours",
    "OursUserRole",
    "Row",
    "Strands",
    "Terms",
    "VirtualClock",
    "ours_with",
    "text_of",
]
