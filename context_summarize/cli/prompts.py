"""`context-summarize prompts`: lists the prompt sets, shows a set, checks it, copies it."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from context_summarize.cli.terminal import Refused, guarded, one_line, plain, printing, sentence, stderr, table
from context_summarize.summaries.prompt_sets import check_set, copy_set, list_sets
from context_summarize.summaries.prompts import find_set

FILES = ("segment.md", "merge.md", "frame.md")


@click.group("prompts", short_help="List, show, check and copy prompt sets.")
def prompts_group() -> None:
    """List, show, check and copy prompt sets.

    A set is a folder with three short files. segment.md and merge.md tell the model how to summarise. frame.md is the
    text around a summary when the agent reads it.
    """


@prompts_group.command("list", short_help="The sets that come with the package.")
def list_command() -> None:
    """List the sets that come with the package."""
    with guarded():
        sets = list_sets()
    made = table()
    made.add_column("Set", no_wrap=True)
    made.add_column("Version", no_wrap=True)
    made.add_column("Words", justify="right", no_wrap=True)
    made.add_column("For")
    for info in sets:
        made.add_row(*map(Text, (info.name, info.version, str(info.words), info.about)))
    with printing() as out:
        out.print(made)
        out.print()
        sentence(out, "Words: length of the instruction for one summary. Use a set with `prompts: NAME`.")


@prompts_group.command("show", short_help="Print the files of a set.")
@click.argument("name", metavar="SET")
@click.option(
    "--file",
    "only",
    type=click.Choice(FILES),
    help="Print this file alone.",
)
def show_command(name: str, only: str | None) -> None:
    """Print the files of a set: segment.md, merge.md and frame.md. SET is a name or a folder.

    Exit status: 0, or 2 if there is no such set or a file cannot be read.
    """
    with guarded():
        folder = find_set(name)
        texts = {file: _read(folder / file) for file in ([only] if only else FILES)}
    with printing() as out:
        for at, (file, text) in enumerate(texts.items()):
            if only is None:
                out.print(Text("\n" * bool(at) + plain(str(folder / file)), style="bold"), soft_wrap=True)
                out.print()
            out.print(Text(plain(text).rstrip("\n")), soft_wrap=True)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is not UTF-8 (byte {error.start + 1}); save the file as UTF-8") from None
    except OSError as error:
        raise Refused(f"{path} cannot be read: {error.strerror or error}; `prompts check` lists the problems") from None


@prompts_group.command("check", short_help="List every problem of a set.")
@click.argument("name", metavar="SET")
@click.pass_context
def check_command(context: click.Context, name: str) -> None:
    """List every problem of a set, one per line. SET is a name or a folder.

    Exit status: 0 no problems, 1 problems found, 2 no such set.
    """
    with guarded():
        folder = find_set(name)
        problems = check_set(name)
    with printing() as out:
        for problem in problems:
            out.print(Text(one_line(problem.text)), soft_wrap=True)
        if not problems:
            out.print(Text(plain(f"{folder}: no problems")), soft_wrap=True)
    if problems:
        stderr().print(f"FAILED: {len(problems)} problem{'s' if len(problems) > 1 else ''}", style="bold red")
        context.exit(1)


@prompts_group.command("copy", short_help="Copy a set, so that you can change it.")
@click.argument("name", metavar="SET")
@click.argument("folder", type=click.Path(path_type=Path), metavar="FOLDER")
def copy_command(name: str, folder: Path) -> None:
    """Copy the three files of a set into a new folder, so that you can change them. Nothing is overwritten.

    Exit status: 0, or 2 if there is no such set or the folder exists.
    """
    with guarded():
        made = copy_set(name, folder)
    with printing() as out:
        out.print(Text(plain(f"{made}: segment.md, merge.md, frame.md")), soft_wrap=True)
        sentence(out, "Change the files, run `prompts check`, and name the folder in the setting `prompts`.")
