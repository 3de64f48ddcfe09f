"""What the documentation names exists: files, headings, make targets, modules, commands with their options."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
from operator import attrgetter

import click

from context_summarize.cli import main
from tests.support.pages import PAGES, commands, named, prose
from tests.support.paths import ROOT

CALLS = [
    (named(page), call)
    for page in PAGES
    if page.name != "CHANGELOG.md"  # it names what is gone
    for call in commands(page) + re.findall(r"`([^`\n]+)`", prose(page))
]
"""Page and command: every line of its blocks, and everything that its text has between backticks."""


def _targets(page):
    """What a page links to: the file, and the heading in it if one is named."""
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" not in target:
            path, _, heading = target.partition("#")
            yield (page.parent / path).resolve() if path else page, heading


def _headings(page):
    """The headings of a page as the addresses that forges give them."""
    titles = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_every_link_leads_to_a_file_and_to_a_heading_in_it():
    for page in PAGES:
        for file, heading in _targets(page):
            assert file.exists(), f"{named(page)}: {file}"
            assert not heading or heading in _headings(file), f"{named(page)}: {file}#{heading}"


def test_every_page_is_reached_from_the_readme():
    found, new = set(), {ROOT / "README.md"}
    while new:
        found |= new
        new = {file for page in new for file, _ in _targets(page) if file in PAGES} - found
    assert [named(page) for page in PAGES if page not in found] == []


def test_every_path_of_the_repository_is_there():
    """A folder of the package may stand without `context_summarize/`."""
    folders = [path.name for path in (*ROOT.iterdir(), *(ROOT / "context_summarize").iterdir()) if path.is_dir()]
    for page, call in CALLS:
        if re.fullmatch(rf"(?:{'|'.join(map(re.escape, folders))})/[\w./-]*", call):
            assert (ROOT / call).exists() or (ROOT / "context_summarize" / call).exists(), f"{page}: {call}"


def test_no_text_of_the_package_names_a_page_that_the_wheel_lacks():
    """An installed package has no folder `docs/`: its texts say themselves what to do."""
    for path in (ROOT / "context_summarize").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
            assert not re.search(r"docs/|(?:README|CONTRIBUTING|SECURITY)\.md", text), f"{path}: {text}"


def test_every_make_target_and_every_module_that_is_run_exists():
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
    for page, call in CALLS:
        if target := re.match(r"make ([a-z-]+)", call):
            assert target[1] in targets, f"{page}: {call}"
        if module := re.search(r"python -m ([\w.]+)", call):
            assert importlib.util.find_spec(module[1]) is not None, f"{page}: {call}"


def test_every_command_and_option_of_the_command_line_exists():
    for page, call in CALLS:
        if not re.match(r"(?:\.venv/bin/)?context-summarize ", call):
            continue
        found: click.Command = main
        for word in shlex.split(call)[1:]:
            if isinstance(found, click.Group) and not word.startswith("-"):
                assert word in found.commands, f"{page}: {call}"
                found = found.commands[word]
            elif word.startswith("--"):
                known = {option for parameter in found.params for option in parameter.opts} | {"--help", "--version"}
                assert word.partition("=")[0] in known, f"{page}: {call}"


def test_each_rule_is_in_the_function_that_the_design_names():
    design = (ROOT / "docs" / "design.md").read_text("utf-8").split("## Which function holds which rule")[1]
    rows = re.findall(r"^\| [^|]+ \| ([^|]*`\w+/\w+\.py`[^|]*) \|$", design.split("\n## ")[0], re.M)
    assert len(rows) == 9
    for cell in rows:
        cited = re.findall(r"((?:`[\w.]+`(?: and )?)+) in `([\w/]+\.py)`", cell)
        assert cited, cell
        for names, file in cited:
            module = importlib.import_module(f"context_summarize.{file.removesuffix('.py').replace('/', '.')}")
            for name in re.findall(r"`([\w.]+)`", names):
                assert attrgetter(name)(module).__module__ == module.__name__, cell
