"""Reads what `vllm bench serve` of a release takes out of its wheel, for docs/from-vllm.md.

  python3 scripts/benchflags.py RELEASE CACHE FLAGS.json

pip downloads the wheel into CACHE unless it is there. Beside FLAGS.json, testdata/parsed.json
gets what the parser in Python makes of each line of testdata/lines.txt. FLAGS.json gets the flags of both
clients that it holds: the one in Python, whose option parser is built as
scripts/catalogue.py builds those of the servers (nothing of the engine is installed),
and the one in Rust, which runs with VLLM_USE_RUST_BENCH=1 and prints its --help.
"""

import importlib
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import zipfile

import catalogue

PROGRAM = "vllm/vllm-rs"


def python_flags(root, lines):
    """The flags of the client in Python and what it makes of lines, printed as JSON."""
    sys.path.insert(0, str(root))
    sys.meta_path.insert(0, catalogue.Finder("vllm"))
    os.environ.update(VLLM_LOGGING_LEVEL="ERROR", VLLM_CONFIGURE_LOGGING="0")
    out, sys.stdout = sys.stdout, sys.stderr
    make = importlib.import_module("vllm.entrypoints.cli.benchmark.serve").BenchmarkServingSubcommand.add_cli_args
    parser = importlib.import_module("vllm.utils.argparse_utils").FlexibleArgumentParser(prog="vllm bench serve")
    make(parser)
    if "vllm.benchmarks.serve" in catalogue.Lenient.failed or "vllm.benchmarks.datasets.datasets" in catalogue.Lenient.failed:
        sys.exit(f"the parser's own modules were not read: {catalogue.Lenient.failed}")
    flags = [flag for action in parser._actions if action.dest != "help" for flag in flags_of(action)]
    if len(flags) < 50:
        sys.exit(f"only {len(flags)} flags were found: say in scripts/benchflags.py where the parser of this release is")
    json.dump([flags, [{"line": line, "flags": parsed(parser, line)} for line in lines.read_text().splitlines()]], out)


def parsed(parser, line):
    """The flags that a line gives, each with its values as they stand there; None for a line
    that is refused whatever its values."""
    for action in parser._actions:
        if action.nargs != 0:
            action.type, action.choices, action.default = str, None, None
    try:
        given = vars(parser.parse_args(line.split()))
    except (SystemExit, IndexError):
        return None
    return {
        name.replace("_", "-"): value if isinstance(value, list) else [] if value is True else [value]
        for name, value in given.items() if value is not None and value is not False
    }


def flags_of(action):
    first = action.option_strings[0]
    flag = {"name": first[2:], "values": {None: "one", 0: "none", "+": "some", "*": "any"}[action.nargs]}
    if type(action).__name__ == "BooleanOptionalAction":
        flag["values"] = "none"
    if action.choices is not None:
        flag["choices"] = list(action.choices) if isinstance(action.choices, list) else sorted(action.choices)
    if first == "--request-id-prefix":
        flag["default"] = "bench-RANDOM-"  # drawn when the parser is built
    elif action.default is not None and action.nargs != 0:
        flag["default"] = str(action.default) if isinstance(action.default, dict) else catalogue.text_of(action.default, action)
    return [flag] + [{"name": other[2:], "values": "none"} for other in action.option_strings[1:]]


def rust_flags(program):
    """The flags of the client in Rust, by its help: each in a line of its own, what it means in the next."""
    text = subprocess.run([program, "bench", "serve", "--help"], stdout=subprocess.PIPE, text=True, check=True).stdout
    flags = []
    for head, about in re.findall(r"^ {2,6}(?:-\w, )?--(.*)\n((?: {10}.*\n?)*)", text, re.M):
        name, *values = head.split()
        if name == "help":
            continue
        many = len(values) > 1 or any(v.endswith("...") for v in values)
        flag = {"name": name, "values": "some" if many else "one" if values else "none"}
        if found := re.search(r"\[default: (.*?)\](?: \[|\s*$)", about):
            flag["default"] = found[1].strip('"').replace('\\"', '"')
        if found := re.search(r"\[possible values: (.*?)\]", about):
            flag["choices"] = found[1].split(", ")
        flags.append(flag)
    return flags


def main(release, cache, target):
    kept = cache / f"vllm-{release}"  # alone, as a wheel is found by being the one in its folder
    kept.mkdir(parents=True, exist_ok=True)
    wheel = next(iter(kept.glob("*.whl")), None) or catalogue.download("vllm", release, kept)
    with tempfile.TemporaryDirectory(dir=cache) as work, zipfile.ZipFile(wheel) as z:
        root = pathlib.Path(work)
        z.extractall(root, [n for n in z.namelist() if n.endswith((".py", ".json")) or n == PROGRAM])
        lines = target.parent / "testdata" / "lines.txt"
        done = subprocess.run([catalogue.environment(cache), __file__, "--read", root, lines], stdout=subprocess.PIPE, text=True)
        if done.returncode:
            sys.exit(f"vllm {release} was not read: see above")
        flags, parsed_lines = json.loads(done.stdout)
        lines.with_name("parsed.json").write_text("[\n" + ",\n".join(json.dumps(x) for x in parsed_lines) + "\n]\n")
        said = {"release": release, "python": flags, "rust": []}
        if (root / PROGRAM).exists():
            (root / PROGRAM).chmod(stat.S_IRWXU)
            said["rust"] = rust_flags(root / PROGRAM)
    lines = [f'"{key}": [\n' + ",\n".join("  " + json.dumps(flag) for flag in said[key]) + "\n]" for key in ("python", "rust")]
    target.write_text(f'{{"release": "{release}",\n' + ",\n".join(lines) + "}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"] and len(sys.argv) == 4:
        python_flags(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]))
    elif len(sys.argv) == 4:
        main(sys.argv[1], pathlib.Path(sys.argv[2]).resolve(), pathlib.Path(sys.argv[3]))
    else:
        sys.exit(__doc__)
