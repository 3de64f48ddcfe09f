"""A small real model on this machine: llama.cpp's server on a loopback port, and sessions that it summarises."""

from benchmarks.local_model.server import Engine, EngineError, LocalServer, installed, serving
from benchmarks.local_model.session import Played, Terms, play

__all__ = ["Engine", "EngineError", "LocalServer", "Played", "Terms", "installed", "play", "serving"]
