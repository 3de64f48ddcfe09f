"""The package name that Amplifier's source loader looks for; the tool lives in `context_summarize.recall.tools`."""

from context_summarize.recall.tools import mount_steering as mount

__amplifier_module_type__ = "tool"

__all__ = ["__amplifier_module_type__", "mount"]
