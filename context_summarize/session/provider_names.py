"""Which mounted provider a setting means: by mount name, by instance id, or by the id of its module."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_PREFIX = "provider-"


def find_provider(name: str, mounted: Mapping[str, Any], entries: Any = None) -> Any | None:
    """The provider that users mean by a name; None if none is meant.

    The first of these that is mounted is taken: a mount name; an instance id of the session's configuration; a module
    id, as configured or as the provider's own package tells it; the name that a provider gives itself. Of several
    instances of one module the first mounted is taken.

    Args:
        mounted: providers by mount name.
        entries: `providers` of the session's configuration, if it is known: mappings with `module`, and `instance_id`
            or `id` where a module is mounted more than once.
    """
    if name in mounted:
        return mounted[name]
    for place in _places(name, entries):
        if place in mounted:
            return mounted[place]
    package = f"amplifier_module_{name.replace('-', '_')}"
    for provider in mounted.values():
        if type(provider).__module__.partition(".")[0] == package:
            return provider
    for provider in mounted.values():
        if getattr(provider, "name", None) in (name, name.removeprefix(_PREFIX)):
            return provider
    return None


def _places(name: str, entries: Any) -> Iterator[str]:
    """Mount names under which the host mounts what is called so in the configuration."""
    for entry in entries if isinstance(entries, list | tuple) else ():
        if not isinstance(entry, Mapping):
            continue
        ids = [entry[key] for key in ("instance_id", "id") if isinstance(entry.get(key), str)]
        module = entry.get("module")
        if isinstance(module, str) and name in (*ids, module):
            yield from ids
            yield module.removeprefix(_PREFIX)
    yield name.removeprefix(_PREFIX)
