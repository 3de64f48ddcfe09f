"""Long sessions under the real agent loops and providers, against a strict server on this machine."""
