"""What a tool's result tells of its call: exit status, error, test figures, an empty search, a job that still runs."""

from __future__ import annotations

import json
import re

from context_summarize.facts.commands import error_lines, exit_figure

END = 4_000
"""Characters of a command, and of each end of a result, that are looked at."""

_SHELL_ERROR = re.compile(
    r"(?:command not found|No such file or directory|Permission denied|Segmentation fault|not recognized as)"
    r"[^\n]{0,60}$",
    re.M,
)
_TEST = re.compile(
    r"\b(?:pytest|py\.test|tox|nox|unittest|jest|vitest|mocha|rspec|phpunit|ctest|bats|playwright|cypress|ava|tap)\b"
    r"|\b(?:npm|pnpm|yarn|bun)\s{1,3}(?:run\s{1,3})?test"
    r"|\b(?:go|cargo|mvn|gradle|gradlew|dotnet|swift|make|just|mix|deno)\s[^|;&\n]{0,40}?\b(?:test|check|verify)\b"
    r"|\btests?[/_.-]?\w{0,40}\.(?:py|sh|js|ts)\b|\b(?:manage\.py|runtests|run_tests)\b"
)
_FIGURES = re.compile(
    r"\b\d+ (?:tests? )?(?:passed|passing|failed|failing|failures?|errors?|skipped|examples?)\b|\btest result: "
    r"|^(?:OK|FAILED|PASS|FAIL|ok)\b[^\n]{0,80}$|^Tests?:? \d|^Ran \d+ tests?|BUILD (?:SUCCESS|FAILURE)"
)
_NOTHING = re.compile(
    r"\s*(?:|\[\]|\{\}|null|none|(?:no (?:matches|results|files?|matching [\w ]{1,30})"
    r"|(?:found )?0 (?:matches|results|files)"
    r"|nothing found)\b[^\n]{0,120})\s*",
    re.I,
)
_NO_MATCHES = re.compile(
    r"[\"'](?:total_matches|num_matches|match_count|matches_count|total_results|count|total)[\"']\s{0,2}:\s{0,2}0\b"
    r"|[\"'](?:matches|results|files)[\"']\s{0,2}:\s{0,2}\[\]"
)
_ERROR_KEY = re.compile(
    r"[\"'](?:is_error[\"']\s{0,2}:\s{0,2}true|success[\"']\s{0,2}:\s{0,2}false"
    r"|error[\"']\s{0,2}:\s{0,2}(?:\{|[\"'][^\"']))"
)
_ERROR_START = re.compile(
    r"\s{0,9}(?:error\b|failed\b|traceback \(most|exception\b|fatal:|could not|unable to|cannot )", re.I
)
_RUNNING = re.compile(
    r"[\"']?status[\"']?\s{0,2}[:=]\s{0,2}[\"']?(?:running|queued|pending|started|in_progress|background)\b"
)
_JOB = re.compile(
    r"\b(?:job_id|bash_id|shell_id|task_id|process_id|agent_id|session_id|pid)[\"']?\s{0,2}[:=]\s{0,2}[\"']?([\w.:-]{1,64})"
)


def both_ends(text: str) -> str:
    """A long text without its middle: what a result tells of its call stands at its ends."""
    return text if len(text) <= 2 * END else f"{text[:END]}\n{text[-END:]}"


def is_test(command: str) -> bool:
    """True for a command that runs tests."""
    return bool(_TEST.search(command[:END]))


def is_error(result: str) -> bool:
    """True for a result that says that the call has failed."""
    return bool(_ERROR_START.match(result) or _ERROR_KEY.search(result[:END]))


def exit_status(result: str) -> int | None:
    """The exit status that a result tells; None where it tells none."""
    figure = exit_figure(result)
    return int(figure) if figure else None


def problem(result: str) -> str:
    """The last line that names an error: of a program, or of the shell; "" without one."""
    lines = error_lines(result, strict=True) or [found[0] for found in _SHELL_ERROR.finditer(result)]
    return lines[-1] if lines else ""


def found_nothing(result: str) -> bool:
    """True for the result of a search without a match."""
    return bool(_NOTHING.fullmatch(_output(result)) or _NO_MATCHES.search(result[:END]))


def test_figures(result: str) -> str:
    """The line that sums up a test run: the last one with figures; "" without one."""
    lines = (line.strip(" =-\r\t") for line in reversed(_output(result).split("\n")) if len(line) <= 400)
    return next((line for line in lines if _FIGURES.search(line)), "")


def running_job(result: str) -> str:
    """The id of a job that goes on when its call has returned; "" without one."""
    found = _JOB.search(result) if is_running(result) else None
    return found[1] if found else ""


def is_running(result: str) -> bool:
    """True for a result that says of a job that it is still under way."""
    return _RUNNING.search(result) is not None


def _output(result: str) -> str:
    """What a program has printed: a JSON result's texts, any other result as it is."""
    if result.lstrip()[:1] != "{":
        return result
    try:
        data = json.loads(result)
    except (ValueError, RecursionError):
        return result.replace("\\n", "\n")
    parts = (data.get(key) for key in ("stdout", "output", "content", "result", "stderr"))
    texts = [part for part in parts if isinstance(part, str)]
    return "\n".join(texts) if texts else result
