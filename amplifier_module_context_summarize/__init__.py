"""The package name that Amplifier's source loader looks for; everything lives in `context_summarize`."""

from context_summarize import __amplifier_module_type__, mount, on_session_ready

__all__ = ["__amplifier_module_type__", "mount", "on_session_ready"]
