"""The package name that Amplifier's source loader looks for; the tool lives in `context_summarize.recall.tool`."""

from context_summarize.recall.tool import mount

__amplifier_module_type__ = "tool"

__all__ = ["__amplifier_module_type__", "mount"]
