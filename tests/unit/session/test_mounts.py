"""host.py: which provider writes the summaries."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from context_summarize.config import Config
from context_summarize.session.mounts import Mounts, find_provider
from context_summarize.summaries.jobs import Target


def named(name: Any) -> Any:
    return SimpleNamespace(name=name)


def coordinator(**providers: Any) -> Any:
    return SimpleNamespace(get=lambda name: providers if name == "providers" else None)


async def test_the_provider_of_a_request_is_the_one_passed_the_last_seen_or_the_first_mounted():
    """In this order."""
    one, two, other = named("a"), named("b"), named("c")
    providers = Mounts(coordinator(one=one, two=two), Config())
    assert providers.seen(None) is one
    assert providers.seen(other) is other
    assert providers.seen(None) is other
    assert providers.seen(two) is two
    assert await providers.summariser() == Target(two, "two")


class Azure:
    """A provider of the module `provider-azure-openai`, which mounts itself under a name of its own."""


Azure.__module__ = "amplifier_module_provider_azure_openai.provider"


def test_a_provider_is_meant_by_mount_name_instance_id_module_id_or_its_own_name():
    """All are what users write; what is not mounted is not found."""
    openai, work, azure, small = named("openai"), named("openai"), Azure(), named("small")
    mounted = {"small": small, "openai-work": work, "openai": openai, "azure": azure}
    meant = {
        "openai": openai,
        "openai-work": work,
        "provider-small": small,
        "provider-azure-openai": azure,
        "azure": azure,
        "provider-vllm": None,
        "": None,
    }
    assert {name: find_provider(name, mounted) for name in meant} == meant
    assert find_provider("provider-openai", {"small": small, "openai-work": work}) is work
