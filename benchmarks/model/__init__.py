"""Sessions with a small real model: llama.cpp's server on a loopback port, and what it summarises."""
