"""`context-summarize prompts`: checks a prompt set, and copies one."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

from context_summarize.cli.common import echo, plain, remark
from context_summarize.errors import TemplateError
from context_summarize.summaries.prompts import PromptSet, find_problems, find_set, load_prompts
from context_summarize.transcript.rendered import counted


@click.group("prompts", short_help="Check and copy prompt sets.")
def prompts_group() -> None:
    """Check and copy prompt sets.

    A set is a folder with two short files, segment.md and merge.md, which tell the model how to summarise.
    """


@prompts_group.command("check", short_help="List every problem of a set.")
@click.argument("name", metavar="SET")
def check_command(name: str) -> None:
    """List every problem of a set, one per line. SET is a name or a folder. Warnings do not count as problems.

    Exit status: 0 no problems, 1 problems found, 2 no such set.
    """
    folder = find_set(name)
    problems = find_problems(folder)
    warning = None if problems else _warning(load_prompts(name))
    for text in problems or [f"{folder}: no problems"]:
        echo(plain(text))
    if warning:
        remark(f"WARNING: {warning}", "yellow")
    if problems:
        remark(f"FAILED: {counted(len(problems), 'problem')}", "red")
        click.get_current_context().exit(1)


@prompts_group.command("copy", short_help="Copy a set, so that you can change it.")
@click.argument("name", metavar="SET")
@click.argument("folder", metavar="FOLDER")
def copy_command(name: str, folder: str) -> None:
    """Copy the two files of a set into a new folder, so that you can change them. Nothing is overwritten.

    Then change the files, run `prompts check`, and name the folder in the setting `prompts`.

    Exit status: 0, or 2 if there is no such set or the folder exists.
    """
    made = _copied(load_prompts(name), Path(folder))
    echo(plain(f"Copied segment.md and merge.md into {made}"))


def _warning(prompts: PromptSet) -> str | None:
    """Returns a warning about a usable set that has no heading for rules; None without one."""
    path, heading = prompts.segment.path, prompts.rules_heading
    if not heading:
        return f"{path}: the header has no rules_heading, so summaries are not searched for quoted instructions"
    if f"{heading}:" not in prompts.segment.body:
        return f"{path}: rules_heading is {heading!r}, but the text does not ask for a line {heading + ':'!r}"
    return None


def _copied(prompts: PromptSet, target: Path) -> Path:
    """Copies the files of a set into a new folder; returns the folder."""
    try:
        folder = target.expanduser()
        folder.mkdir(parents=True)
        for template in (prompts.segment, prompts.merge):
            shutil.copyfile(template.path, folder / template.path.name)
    except FileExistsError:
        raise TemplateError(f"{folder} exists and is left unchanged; name a new folder") from None
    except (OSError, RuntimeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TemplateError(f"the set cannot be written to {target} ({reason}); name another folder") from error
    return folder
