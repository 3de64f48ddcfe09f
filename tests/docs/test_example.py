"""`examples/session.py`: a whole session in one file."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT

SESSION = ROOT / "examples" / "session.py"


def test_the_session_compacts_recalls_and_resumes_without_a_call(tmp_path: Path) -> None:
    """It ends well in an empty folder, far from the checkout's own modules, and each of its four lines says so."""
    environment = {**os.environ, "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", str(SESSION)]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    sizes, saved, recalled, resumed = done.stdout.splitlines()
    messages, sent, compactions, calls = map(int, re.findall(r"\d+", sizes))
    assert sent < messages / 2
    assert min(compactions, calls) > 0
    assert re.fullmatch(r"compact\(\) saved [\d,]+ tokens", saved)
    assert recalled == "recall found ORD-12: parcel PX-127"
    assert resumed == "after a restart: the same request True, 0 calls"
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"
