"""Prints what the option parsers of the engines make of the flags of flags.json.

vLLM and SGLang have argparse, TensorRT-LLM has click. The layout of an engine's
--help is theirs, so that a reader of it is held against the parsers themselves:
with long lists of spellings and choices, switches of both values, groups, defaults,
and explanations that begin a line with another flag.

  python3.12 testdata/help.py vllm   > testdata/help/vllm.txt
  python3.13 testdata/help.py sglang > testdata/help/sglang.txt
  python3.12 testdata/help.py trtllm > testdata/help/trtllm.txt    (needs click)

Run it in internal/engine. From 3.13 argparse names a value once for all spellings.
"""

import argparse
import itertools
import json
import os
import sys

os.environ["COLUMNS"] = "80"
TYPES = {"int": int, "float": float, "json": json.loads}
HINTS = itertools.cycle([
    "", "", "Has no effect together with --enforce-eager or --this-is-no-flag, which is said here at some length, so that it breaks "
    "into several lines.", "", "Examples: -x, --y=1.",
])


def explain(f):
    return (f.get("doc", "As the name says.") + " " + next(HINTS)).strip().replace("%", "%%")


def newest(flags):
    return [f for f in flags if "until" not in f and f["flag"] not in ("--help", "-h")]


class EnableDisable(argparse.BooleanOptionalAction):
    """A switch as vLLM lists it from 0.33 on: --no-enable-x is taken, and not shown."""

    def __init__(self, option_strings, dest, **kwargs):
        super().__init__(option_strings, dest, **kwargs)
        self.option_strings = [*option_strings, opposite(option_strings[0])]


def opposite(name):
    pairs = ("--enable-", "--disable-"), ("--disable-", "--enable-")
    return next((other + name.removeprefix(head) for head, other in pairs if name.startswith(head)), None)


class Sorted(argparse.ArgumentDefaultsHelpFormatter, argparse.RawDescriptionHelpFormatter):
    """Options in the order of their names, as vLLM's formatter has them."""

    def add_arguments(self, actions):
        super().add_arguments(sorted(actions, key=lambda a: a.option_strings))


def with_argparse(prog, flags, positional, formatter):
    parser = argparse.ArgumentParser(prog=prog, formatter_class=formatter, description="Launches a server.")
    if positional:
        parser.add_argument("model_tag", nargs="?", help="The model to serve.")
    groups = {}
    for f in newest(flags):
        group = groups.get(f["group"])
        if group is None:
            group = groups[f["group"]] = parser.add_argument_group(f["group"].title() + "Config", "Flags of this group.")
        names = [f["flag"], *f.get("aliases", [])]
        kind = {"help": explain(f)}
        if f["kind"] == "bool" and opposite(f["flag"]) in f.get("off", []):
            kind["action"] = EnableDisable
        elif f["kind"] == "bool" and any(o.startswith("--no-") for o in f.get("off", [])):
            kind["action"] = argparse.BooleanOptionalAction
        elif f["kind"] == "bool":
            kind["action"] = "store_true"
            names += f.get("off", [])
        else:
            kind["type"] = TYPES.get(f["kind"], str)
            if f["kind"] == "list":
                kind["nargs"] = "+"
            if f["kind"] == "choice" and f.get("choices"):
                kind["choices"], kind["type"] = f["choices"], str
            kind["default"] = f.get("default")
        group.add_argument(*names, **kind)
    parser.print_help()


def with_click(prog, flags):
    import click

    types = {"int": click.INT, "float": click.FLOAT}
    params = [click.Argument(["model"])]
    for f in newest(flags):
        names = [f["flag"], *f.get("aliases", [])]
        kind = {"help": explain(f), "show_default": True, "default": f.get("default")}
        if f["kind"] == "bool" and f.get("off"):
            names = [names[0] + "/" + f["off"][0], *names[1:]]
            kind["default"] = f.get("default") == "true"
        elif f["kind"] == "bool":
            kind["is_flag"] = True
            kind["default"] = False
        else:
            kind["type"] = click.Choice(f["choices"]) if f.get("choices") else types.get(f["kind"], click.STRING)
        params.append(click.Option(names, **kind))
    command = click.Command("serve", params=params, help="Runs a server.")
    command.main(["--help"], prog_name=prog, standalone_mode=False)


if __name__ == "__main__":
    engine = sys.argv[1]
    with open("flags.json", encoding="utf-8") as file:
        catalogue = json.load(file)[engine]["flags"]
    if engine == "trtllm":
        with_click("trtllm-serve serve", catalogue)
    elif engine == "vllm":
        with_argparse("vllm serve", catalogue, True, Sorted)
    else:
        with_argparse("launch_server.py", catalogue, False, argparse.HelpFormatter)
