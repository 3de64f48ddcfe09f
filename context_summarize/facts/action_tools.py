"""Which tool does what: by its name, and where the name is unknown by the names of its arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from context_summarize.config import ToolKind

_NAMES: Mapping[ToolKind, str] = {
    "read": "read_file read view view_file cat open open_file get_file_contents read_many_files list_dir ls"
    " list_directory web_fetch fetch fetch_url load_skill scroll_down scroll_up goto",
    "write": "write_file write create create_file create_new_file new_file save_file write_to_file notebook_create",
    "edit": "edit_file edit multi_edit multiedit apply_patch apply_diff patch str_replace str_replace_editor insert"
    " str_replace_based_edit_tool replace_in_file search_replace search_and_replace insert_content notebook_edit"
    " edit_notebook append_file text_editor",
    "delete": "delete_file remove_file delete rm",
    "command": "bash shell execute_command run_command run_shell_command exec_command terminal run_terminal_cmd"
    " execute exec run local_shell powershell pwsh python execute_code run_python container_exec execute_bash",
    "search": "grep glob search find find_file search_file search_dir search_files grep_search file_search rg ripgrep"
    " codebase_search semantic_search web_search websearch search_web search_content",
    "delegate": "delegate task agent spawn spawn_agent new_task dispatch_agent subagent run_agent live_job",
    "none": "think todo todo_write todowrite todo_read update_plan recall context submit finish",
}
KNOWN_TOOLS: Mapping[str, ToolKind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
"""The tools of Amplifier (filesystem, bash, search, web, delegate, task, todo) and the common names of other agents."""

PATH_KEYS = ("file_path", "path", "filename", "file", "file_name", "filepath", "target_file", "notebook_path", "uri")
COMMAND_KEYS = ("command", "cmd", "script", "code")
QUERY_KEYS = ("pattern", "query", "regex", "search_term", "q", "glob", "file_name", "search_query")
LABEL_KEYS = ("agent", "subagent_type", "agent_name", "name", "description", "instruction", "prompt", "task", "message")
_CONTENT_KEYS = frozenset({"content", "file_text", "contents", "new_content"})
_EDIT_KEYS = frozenset(
    ["old_string", "old_str", "search", "edits", "diff", "patch", "new_string", "new_str", "replace"]
)
_EDITOR: Mapping[str, ToolKind] = {
    "view": "read",
    "create": "write",
    "str_replace": "edit",
    "insert": "edit",
    "undo_edit": "edit",
}
"""What an editor's `command` does, where a path stands beside it."""
_CHANGES = re.compile(
    r"(?:add|approve|assign|book|cancel|close|commit|create|delete|deploy|disable|enable|insert|install|merge|modify|move"
    r"|order|pay|post|publish|purge|put|refund|register|remove|rename|replace|reset|restart|revoke|schedule|send|set|start"
    r"|stop|submit|transfer|uninstall|update|upload|upsert)(?=[_A-Z-]|$)"
)
"""Verbs that a tool's name begins with when it changes something."""


def kind_of(name: str, arguments: Mapping[str, Any], tools: Mapping[str, ToolKind]) -> ToolKind:
    """What a call does.

    Args:
        tools: kinds by name that come before the known ones; see the setting `action_tools`.
    """
    plain = plain_name(name)
    given = tools.get(name) or tools.get(plain)
    if given is not None:
        return given
    has_path = any(isinstance(arguments.get(key), str) for key in PATH_KEYS)
    editor = arguments.get("command")
    if has_path and isinstance(editor, str) and editor in _EDITOR:
        return _EDITOR[editor]
    return KNOWN_TOOLS.get(plain) or _by_arguments(plain, arguments, has_path)


def plain_name(name: str) -> str:
    """The name without its server or namespace, with `_` between words: `mcp__files__readFile` → `read_file`."""
    last = re.split(r"__|[./:]", name)[-1]
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", last).replace("-", "_").lower()


def _by_arguments(plain: str, arguments: Mapping[str, Any], has_path: bool) -> ToolKind:
    if has_path:
        if plain.startswith(("delete", "remove")):
            return "delete"
        if not _EDIT_KEYS.isdisjoint(arguments):
            return "edit"
        if not _CONTENT_KEYS.isdisjoint(arguments):
            return "write"
    elif any(isinstance(arguments.get(key), str | list) for key in COMMAND_KEYS[:2]):
        return "command"
    return "change" if _CHANGES.match(plain) else "none"
