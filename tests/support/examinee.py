"""A model that does each step of an exam: a function for `serving`, which tests tell what to say instead."""

from __future__ import annotations

import json
import os
import signal
import threading
from typing import Any

from tests.support.chat_server import Said

STEPS = {"You write questions": "part", "Write two questions about things": "absent", "an agent has before": "answer"}
STEPS |= {"Say for each answer": "grade"}
FACTS = ["the order is there", "it is blue"]


class Examinee:
    """A model that does each step of an exam well, as long as `instead` has nothing else to say."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.instead: dict[str, list[Said]] = {}
        """By step: answers in place of the next ones; an answer of -1 is Ctrl-C, one of 0 hangs."""
        self.let_go = threading.Event()

    def __call__(self, body: dict[str, Any]) -> Said:
        system, user = body["messages"][0]["content"], body["messages"][1]["content"]
        step = next((step for sign, step in STEPS.items() if sign in system), "summary")
        self.steps.append(step)
        if given := self.instead.get(step):
            said = given.pop(0)
            if said == -1:
                os.kill(os.getpid(), signal.SIGINT)
            if said in (0, -1):
                self.let_go.wait(30)
            return said
        return str(getattr(self, step)(user)) if step != "answer" else self.answer(body)

    def summary(self, user: str) -> str:
        return "Goal: the user asked for orders, and got them."

    def part(self, user: str) -> str:
        return "Here they are:\n" + json.dumps([{"text": f"Which [order]? {at}", "facts": FACTS} for at in range(2)])

    def absent(self, user: str) -> str:
        words = ("zeppelin", "ORD00003")  # the second one occurs
        return json.dumps([{"text": f"Where is {word}?", "word": word} for word in words])

    def answer(self, body: dict[str, Any]) -> Said:
        """It reads back once where it can, and knows no more without."""
        if "tools" not in body:
            return "The record does not say it."
        if len(body["messages"]) > 2:
            return f"It is blue: {body['messages'][-1]['content'][:60]}"
        function = {"name": "recall", "arguments": json.dumps({"words": "ORD00003"})}
        return {"content": None, "tool_calls": [{"id": "c1", "type": "function", "function": function}]}

    def grade(self, user: str) -> str:
        """It sees what an answer says, and not from which view it is."""
        labels = {label: user.partition(f"Answer {label}: ")[2].partition("\n\n")[0] for label in "ABC"}
        return json.dumps({label: [2] if "blue" in text else [] for label, text in labels.items()})
