"""Which mounted provider a name means."""

from __future__ import annotations

from types import SimpleNamespace

from context_summarize.session.host import find_provider


class Azure:
    """A provider of the module `provider-azure-openai`, which mounts itself under a name of its own."""


Azure.__module__ = "amplifier_module_provider_azure_openai.provider"


def test_a_provider_is_meant_by_mount_name_instance_id_module_id_or_its_own_name():
    """All are what users write; what is not mounted is not found."""
    openai, work, azure, small = (SimpleNamespace(name="openai"), SimpleNamespace(name="openai"), Azure(), object())
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
