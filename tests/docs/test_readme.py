"""The README: one screen, whose sample output is what the demo prints."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache

import pytest

from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text("utf-8")
OUTPUT, SUMMARY = re.findall(r"```text\n(.*?)```", README, re.S)
RECORDING = ROOT / "examples" / "airline-desk.jsonl"
MOST_WORDS = 1200


@cache
def replayed(*options: str, by: str = "replay") -> str:
    """What the demo prints with these options."""
    command = [sys.executable, "-c", "from context_summarize.cli import main; main()", by, str(RECORDING)]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def plain(text: str) -> str:
    """The text in one line, with single blanks, without milliseconds."""
    return re.sub(r"\s+", " ", re.sub(r"\d+ ms\b", "", text)).strip()


def test_it_is_one_screen() -> None:
    """As `wc -w` counts."""
    assert len(README.split()) <= MOST_WORDS


@pytest.mark.parametrize("line", [line for line in OUTPUT.splitlines() if line.strip() != "…"])
def test_the_demo_prints_each_line_of_its_sample(line: str) -> None:
    """The figures included; the time that a request waited varies."""
    assert plain(line) in plain(replayed())


def test_the_sample_of_a_summary_is_the_demos() -> None:
    """Frame, prose and ledger; a line may end with an ellipsis."""
    first, *_ = SUMMARY.splitlines()
    frame = re.escape(first.partition(",")[0])
    rows = [str(row["content"]) for row in json.loads(replayed("--show-view", "--json"))["last_view"]]
    (summary,) = [text for text in rows if re.match(frame, text)]
    assert [line for line in SUMMARY.splitlines() if line.removesuffix(" …]").removesuffix(" …") not in summary] == []


def test_the_shares_that_summaries_hold_are_those_that_inspect_prints() -> None:
    """Of merged summaries one by one, of the others the least and the most."""
    printed = re.findall(r"level (\d) .* (\d+)%$", replayed(by="inspect"), re.M)
    merged = [share for level, share in printed if level != "0"]
    alone = sorted(int(share) for level, share in printed if level == "0")
    told = plain(README.split("## Limits")[1])
    assert f"hold {', '.join(merged[:-1])} and {merged[-1]} % of the exact values" in told
    assert f"a summary of one segment holds {alone[0]} to {alone[-1]} %" in told


def test_the_picture_has_both_schemes_and_words() -> None:
    """Those who cannot see it read what it shows."""
    picture = README.split("<picture>")[1].split("</picture>")[0]
    assert 'media="(prefers-color-scheme: dark)" srcset="docs/images/demo-dark.svg"' in picture
    assert 'src="docs/images/demo-light.svg"' in picture
    assert len(re.findall(r'alt="[^"]{80,}"', picture)) == 1


def test_each_row_of_the_proof_names_its_command() -> None:
    """Five rows: ours, the best peer's, the command."""
    rows = [line for line in README.split("## Proof")[1].split("## Limits")[0].splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 5
    assert all(re.fullmatch(r"\| .+ \| .+ \| .+ \| `[^`]+` \|", row) for row in rows[2:])
