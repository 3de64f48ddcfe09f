"""Installed providers that are mounted outside any session."""

from __future__ import annotations

import pytest

from context_summarize.cli.replay import mounted_provider
from context_summarize.errors import CommandError
from tests.support.cli import install


async def test_an_installed_provider_is_mounted_and_cleaned_up(tmp_path, monkeypatch):
    name = install(
        tmp_path,
        monkeypatch,
        "clean",
        "cleaned = []\n"
        "async def mount(coordinator, config):\n"
        "    await coordinator.mount('providers', 'the provider', name='clean')\n"
        "    async def cleanup(): cleaned.append(config)\n"
        "    return cleanup\n",
    )

    async with mounted_provider(name) as mounted:
        assert mounted == ("clean", "the provider")
        import installed_clean  # type: ignore[import-not-found]

        assert installed_clean.cleaned == []
    assert installed_clean.cleaned == [{}]


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("silent", "async def mount(coordinator, config): pass", "provider-silent mounted no provider; is its key set"),
        (
            "raising",
            "async def mount(coordinator, config): 1 / 0",
            "provider-raising cannot be mounted: ZeroDivisionError",
        ),
        ("broken", "import no_such_module", "provider-broken cannot be mounted: ModuleNotFoundError"),
    ],
)
async def test_a_provider_that_does_not_mount_says_why(tmp_path, monkeypatch, name, source, says):
    with pytest.raises(CommandError, match=says):
        async with mounted_provider(install(tmp_path, monkeypatch, name, source)):
            pass
