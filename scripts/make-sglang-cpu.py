#!/usr/bin/env python3
"""Make a real SGLang that runs without a GPU, and a small model for it.

    python3 scripts/make-sglang-cpu.py --env ~/sglang-cpu --model models/tiny-llama

The environment takes 6.5 GB and is sglang 0.5.23 with PyTorch 2.14.1, in the exact
versions of sglang-cpu.txt, on Linux x86-64 and Python 3.11 to 3.13. uv does it in a
minute and a half where it is on the PATH, else pip does. The packages of kernels for GPUs
are left out.

The package index has no build of SGLang's kernels for CPUs (sgl_kernel), and SGLang
imports some of them by name wherever it runs on a CPU. They are of speculation and of
moving its cache, and a Llama without speculation calls none: its layers and its
attention are then PyTorch's, by SGLang's own code (--attention-backend torch_native). A
stand-in of ours lets those imports through and refuses each call.

The model is that of make-vllm-cpu.py: `--load-format dummy` makes up its weights. What
is there already stays.
"""

import pathlib

import cpuenv

VERSION = "0.5.23"
STAND_IN = '''"""Stands in for SGLang's kernels, of which the package index has no build for CPUs.
Made by perflab's scripts/make-sglang-cpu.py. Whatever is called here refuses.
"""


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def missing(*args, **kwargs):
        raise NotImplementedError(f"sgl_kernel.{name} is called, and this environment has no kernels for CPUs: leave off what needs it (speculation does)")

    return missing
'''


def add_stand_in(env):
    """Lets SGLang's imports of sgl_kernel through."""
    (cpuenv.site(env) / "sgl_kernel.py").write_text(STAND_IN)


if __name__ == "__main__":
    cpuenv.main(__doc__, f"sglang {VERSION}", pathlib.Path(__file__).with_name("sglang-cpu.txt"), add_stand_in)
