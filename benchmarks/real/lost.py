"""Lost-in-Compaction's densest context (d80): a chat of 190,000 tokens with eighty questions of LongMemEval in it.

The repository holds no context before compaction. The one read here has the least of it: its authors' summary stands
in place of the oldest 5 %, and questions about that part are left out.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.real.chats import DATA, Chat, Message, Question, read_json
from benchmarks.real.scoring import gold_values, places

RUN = Path("lost-in-compaction/compaction_v5_R4_20260224_1353/contexts")
_BARE = frozenset({"yes", "no"})


def load_all(data: Path = DATA) -> list[Chat]:
    """The one chat.

    Raises:
        DataMissingError: it is not fetched.
    """
    rows: Any = read_json(data / RUN / "d80_C1.json")
    told: Any = read_json(data / RUN / "d80_C1_meta.json")
    messages = tuple(Message(row["role"], row["content"]) for row in rows)
    facts = [fact for fact in told["facts"] if not fact["compacted"]]
    return [Chat("lost-in-compaction-d80", messages, tuple(_question(fact, messages) for fact in facts))]


def _question(fact: dict[str, Any], messages: tuple[Message, ...]) -> Question:
    sources = tuple(range(fact["message_start"], min(fact["message_end"] + 1, len(messages))))
    texts = [messages[at].content for at in sources]
    answer = fact["answer"].strip().rstrip(".")
    whole = answer.lower() not in _BARE and any(places(text, answer) for text in texts)
    golds = (answer,) if whole else gold_values(answer, texts)
    held = tuple(at for at in sources if any(places(messages[at].content, gold) for gold in golds))
    return Question(fact["question_type"], fact["question"], answer, held, golds)
