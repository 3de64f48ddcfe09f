"""provider_names.py: what `summary_provider` may be, as users write it."""

from __future__ import annotations

from typing import Any

import pytest

from context_summarize.session.provider_names import find_provider


class Named:
    """A provider with a name of its own."""

    def __init__(self, name: str) -> None:
        self.name = name


class Foreign:
    """A provider of the module `provider-azure-openai`, which mounts itself under a name of its own."""


Foreign.__module__ = "amplifier_module_provider_azure_openai.provider"

OPENAI, WORK, AZURE, SMALL = Named("openai"), Named("openai"), Foreign(), Named("small")
MOUNTED = {"small": SMALL, "openai": OPENAI, "openai-work": WORK, "azure": AZURE}
ENTRIES = [
    {"module": "provider-openai"},
    {"module": "provider-openai", "instance_id": "openai-work"},
    {"module": "provider-vllm", "id": "local"},
    "not a mapping",
    {"module": 5, "instance_id": None},
]


@pytest.mark.parametrize("entries", [ENTRIES, None])
def test_a_mount_name_an_instance_id_or_a_module_id(entries: Any) -> None:
    """All three are what users write; what is not mounted is not found."""
    meant = {
        "openai": OPENAI,
        "openai-work": WORK,
        "provider-small": SMALL,
        "provider-azure-openai": AZURE,
        "azure": AZURE,
        "provider-vllm": None,
        "": None,
    }
    assert {name: find_provider(name, MOUNTED, entries) for name in meant} == meant


def test_a_module_that_is_mounted_under_an_instance_id_alone() -> None:
    """The configuration tells which; without it, the provider's own name does."""
    mounted = {"openai-work": WORK, "small": SMALL}
    entries = [{"module": "provider-openai", "instance_id": "openai-work"}]
    assert find_provider("provider-openai", mounted, entries) is WORK
    assert find_provider("provider-openai", mounted) is WORK
    assert find_provider("openai", mounted) is WORK


def test_an_instance_id_that_the_host_calls_id() -> None:
    """Bundles write `id`."""
    local = Named("anything")
    assert find_provider("provider-vllm", {"local": local}, [{"module": "provider-vllm", "id": "local"}]) is local
