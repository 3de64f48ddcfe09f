"""The acceptance suite: what a rewrite of the inside must pass unchanged; `pytest -m acceptance` runs it."""

from __future__ import annotations

from tests.support.paths import ROOT

FILES = {
    *(f"properties/test_{name}.py" for name in ("state_machine", "manager", "steering", "sizes", "calls")),
    *(f"behaviour/test_{name}.py" for name in ("hostile_input", "injection", "floors", "outage", "races", "prefetch")),
    *(f"behaviour/test_{name}.py" for name in ("resume", "durability", "session_file", "steering", "undo_and_pins")),
    *(f"contracts/{name}.py" for name in ("factories", "test_stores", "test_public_faces")),
    *(f"host/test_{name}.py" for name in ("session", "loops", "validation", "wheel")),
}
"""Within tests/."""

PATHS = {ROOT / "tests" / name for name in FILES}
