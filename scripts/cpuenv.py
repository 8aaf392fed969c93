"""Makes environments of engines that run without a GPU, and a small model for them.

Shared by the scripts beside it, one for each engine.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import sys

CONFIG = pathlib.Path(__file__).parents[1] / "examples" / "tiny-llama.json"


def site(env):
    """The directory of the environment's packages."""
    return pathlib.Path(subprocess.run([str(env / "bin" / "python"), "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"],
                                       check=True, capture_output=True, text=True).stdout.strip())


def make_environment(env, lock, add):
    """Installs the locked packages, and what add(env) adds to them, unless just these were
    installed here before."""
    stamp = env / "installed.txt"
    if stamp.exists() and stamp.read_text() == lock.read_text():
        print(f"{env}: is there")
        return
    python = str(env / "bin" / "python")
    if shutil.which("uv"):
        subprocess.run(["uv", "venv", "--allow-existing", "--python", sys.executable, str(env)], check=True)
        subprocess.run(["uv", "pip", "install", "--no-deps", "--python", python, "-r", str(lock)], check=True)
    else:
        subprocess.run([sys.executable, "-m", "venv", str(env)], check=True)
        subprocess.run([python, "-m", "pip", "install", "--no-deps", "-r", str(lock)], check=True)
    add(env)
    stamp.write_text(lock.read_text())
    print(f"{env}: by {lock.name}")


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


def main(doc, engine, lock, add):
    """The command line of a script: engine names what is installed, for its messages."""
    if sys.argv[1:2] == ["model"]:
        return make_model(pathlib.Path(sys.argv[2]))
    p = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--env", type=pathlib.Path, required=True, help="directory of the environment, best outside of this repository")
    p.add_argument("--model", type=pathlib.Path, required=True, help="directory of the model")
    o = p.parse_args()
    if not (3, 11) <= sys.version_info[:2] <= (3, 13):
        sys.exit(f"{engine} is pinned for Python 3.11 to 3.13, and this is {sys.version.split()[0]}: use one of those")
    make_environment(o.env, lock, add)
    config = o.model / "config.json"
    if config.exists() and config.read_text() == CONFIG.read_text():
        print(f"{o.model}: is there")
        return
    subprocess.run([str(o.env / "bin" / "python"), sys.argv[0], "model", str(o.model)], check=True)
    print(f"{o.model}: made by {CONFIG.name}")
