"""The commands of the documentation are run in CI only: they replay the whole recording, several times."""

from tests.support.effort import LONG

collect_ignore = [] if LONG else ["test_commands.py"]
