"""Reads the imports of every file of the package and holds the direction that the design gives them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import context_summarize

PACKAGE = Path(context_summarize.__file__).parent

LEVELS = {
    # 0: nouns and errors
    "_version": 0,
    "errors": 0,
    "types": 0,
    # 1: one concern each
    "address": 10,
    "config": 10,
    "codec": 10,
    "messages": 10,
    "outgoing": 11,
    "patterns": 10,
    "prompts": 10,
    "prompt_sets": 11,
    "sqlite_file": 10,
    "statistics": 10,
    "tokens": 10,
    # 2: pure functions over the above, and the store
    "digest": 20,
    "redact": 20,
    "recall_words": 20,
    "rules": 20,
    "host_copy": 20,
    "journal": 20,
    "store_guard": 20,
    "servers": 20,
    "store": 20,
    "sqlite_store": 21,
    "layered": 21,
    "shared_store": 21,
    "stores": 22,
    "history_file": 21,
    "segments": 21,
    "history": 22,
    "records": 23,
    "system_prompt": 23,
    "elide": 23,
    "recall": 23,
    "recall_reader": 24,
    "view": 24,
    "sizes": 25,
    "snapshot": 25,
    "plan": 26,
    # 3: providers, and who asks them
    "breaker": 30,
    "failures": 30,
    "gate": 30,
    "providers": 30,
    "chat_completions": 30,
    "offline": 30,
    "recall_tool": 30,
    "openai_compatible": 31,
    "testing": 30,
    "summarizer": 31,
    # 4: the manager and its helpers
    "events": 40,
    "host": 40,
    "pending": 40,
    "replay_result": 40,
    "request": 40,
    "announcer": 41,
    "audit": 41,
    "texts": 41,
    "boundary": 42,
    "ahead": 43,
    "manager": 44,
    "replay": 45,
    "html_report": 46,
    "survey": 45,
    # 5: who puts it together
    "cli_show": 48,
    "cli_options": 49,
    "cli_result": 49,
    "cli_survey": 49,
    "cli_cache": 50,
    "cli_inspect": 50,
    "cli_prompts": 50,
    "cli_replay": 50,
    "cli": 51,
    "module": 50,
    # 6: the face
    "__init__": 60,
}
"""File → level: a file imports files of lower levels only. The tens are the levels of docs/design.md."""

OWNERS = {
    "asyncpg": {"servers"},
    "cachetools": {"store"},
    "key_value": {"servers", "shared_store"},
    "httpx": {"chat_completions", "openai_compatible"},
    "redis": {"servers"},
    "click": {"cli", "cli_cache", "cli_inspect", "cli_options", "cli_prompts", "cli_replay", "cli_show"},
    "rich": {"cli_prompts", "cli_replay", "cli_result", "cli_show", "cli_survey"},
    "tenacity": {"failures", "summarizer"},
    "tiktoken": {"tokens"},
}
"""Third party → the only files that import it."""


def imported(source: str) -> Iterator[str]:
    """Dotted names that a file of the package imports, wherever in it; relative ones made absolute."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(part for part in ("context_summarize" if node.level else "", node.module or "") if part)
            yield from (f"{base}.{alias.name}" for alias in node.names)


def wrong_imports(name: str, source: str) -> list[str]:
    """What is wrong with the imports of the file `name`, a sentence each."""
    wrong = []
    for dotted in imported(source):
        top, *rest = dotted.split(".")
        if top == "context_summarize":
            other = rest[0] if rest and rest[0] in LEVELS else "__init__"
            if LEVELS[other] >= LEVELS[name]:
                wrong.append(f"{name} (level {LEVELS[name]}) imports {other} (level {LEVELS[other]})")
        elif name not in OWNERS.get(top, {name}):
            wrong.append(f"{name} imports {top}, which belongs to {', '.join(OWNERS[top])}")
    return wrong


def test_every_file_of_the_package_has_a_level():
    files = {path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py")}

    assert files - LEVELS.keys() == set(), "give these files a level in LEVELS, and a line in docs/design.md"


@pytest.mark.parametrize("path", sorted(PACKAGE.glob("*.py")), ids=lambda path: path.stem)
def test_a_file_imports_lower_levels_only_and_no_third_party_of_another_file(path):
    assert wrong_imports(path.stem, path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    "source",
    [
        "from .manager import X",
        "from . import manager",
        "from context_summarize import manager",
        "from context_summarize.manager import X",
        "import context_summarize.manager as m",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .manager import X",
        "def late():\n    from .manager import X",
    ],
)
def test_an_import_upwards_is_seen_in_every_form(source):
    assert wrong_imports("segments", source) == ["segments (level 21) imports manager (level 44)"]


@pytest.mark.parametrize(
    "source", ["import context_summarize", "from context_summarize import mount", "from . import x"]
)
def test_an_import_of_the_face_is_an_import_upwards(source):
    assert wrong_imports("manager", source) == ["manager (level 44) imports __init__ (level 60)"]


def test_files_of_one_level_do_not_import_each_other():
    assert wrong_imports("config", "from .tokens import X") == ["config (level 10) imports tokens (level 10)"]


def test_a_third_party_is_imported_by_its_owner_alone():
    assert wrong_imports("view", "import tiktoken.core") == ["view imports tiktoken, which belongs to tokens"]
    assert wrong_imports("tokens", "import tiktoken\nimport json\nimport amplifier_core") == []
