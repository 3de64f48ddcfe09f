"""`examples/session.py` and the README's picture: a whole session in one file, and what its pictures say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

SESSION = ROOT / "examples" / "session.py"


def test_the_session_compacts_recalls_and_resumes_without_a_call(tmp_path: Path) -> None:
    """It ends well in an empty folder, far from the checkout's own modules, and each of its four lines says so."""
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(SESSION)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    sizes, saved, recalled, resumed = done.stdout.splitlines()
    told = re.fullmatch(r"(\d+) messages, (\d+) sent, (\d+) compactions, (\d+) calls for summaries", sizes)
    assert told is not None, sizes
    messages, sent, compactions, calls = map(int, told.groups())
    assert messages == 160
    assert sent < messages / 2
    assert min(compactions, calls) > 0
    assert re.fullmatch(r"compact\(\) saved [\d,]+ tokens", saved)
    assert recalled == "recall found ORD-12: parcel PX-127"
    assert resumed == "after a restart: the same request True, 0 calls"
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


def test_the_session_fits_on_two_screens() -> None:
    """A reader should see the whole of it."""
    assert len(SESSION.read_text("utf-8").splitlines()) <= 120


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_picture_shows_the_demo(scheme: str) -> None:
    """Its figures are those that `make demo` prints; it loads nothing and is small."""
    picture = (ROOT / "docs" / "images" / f"demo-{scheme}.svg").read_text("utf-8")
    assert "120,073 tokens" in picture
    assert "35,000 tokens" in picture
    assert len(picture) < 40_000
    assert re.findall(r"(?:href|src|url)\s*[=(]|<script", picture) == []
