"""Compare what `import hopforge` offers with its record, ``.ci/public_api.txt``: names and signatures.

``python .ci/public_api.py`` shows what differs (exit status 1). ``--write`` writes the record anew, if a line of the
section Unreleased of CHANGELOG.md names each thing that has changed as ``hopforge.NAME``.
"""

import argparse
import difflib
import inspect
import re
import sys
from pathlib import Path
from typing import Any

import hopforge

ROOT = Path(__file__).resolve().parents[1]
RECORD, CHANGELOG = Path(__file__).with_suffix(".txt"), ROOT / "CHANGELOG.md"


def _signature(thing: Any) -> str:
    text = str(inspect.signature(thing))
    return re.sub(r"\bpathlib\._local\.", "pathlib.", text)  # where Python 3.13 has it


def _members(name: str, kind: type) -> list[str]:
    """Describe a class: how it is made if it is a tuple, its properties, methods and operators of its own."""
    bases = ", ".join(base.__name__ for base in kind.__mro__[1:-1])
    lines = [f"class {name}({bases})"]
    if issubclass(kind, tuple):
        lines += [f"{name}.{field}" for field in kind._fields]  # type: ignore[attr-defined]
    for member in dir(kind):
        of = next((base for base in kind.__mro__ if member in vars(base)), object)
        shown = not member.startswith("_") or member in {"__getitem__", "__eq__"}
        elsewhere = not of.__module__.startswith("hopforge.") or (of is not kind and of.__name__ in hopforge.__all__)
        if not shown or elsewhere or issubclass(kind, tuple):
            continue
        found = inspect.getattr_static(kind, member)
        function = getattr(found, "fget", None) or getattr(found, "func", None)  # a property, a cached one
        if function is not None:
            lines.append(f"{name}.{member} -> {_signature(function).partition(' -> ')[2]}")
        elif callable(found):
            lines.append(f"{name}.{member}{_signature(found)}")
        else:
            lines.append(f"{name}.{member}")
    return lines


def public_lines() -> list[str]:
    """Return a line for each public name, and for each member of public classes."""
    lines: list[str] = []
    for name in hopforge.__all__:
        thing = getattr(hopforge, name)
        if isinstance(thing, type):
            lines += _members(name, thing)
        else:
            lines.append(f"{name}{_signature(thing)}" if callable(thing) else name)
    return lines


def differences(record: list[str], now: list[str]) -> list[str]:
    """Return the lines that have gone (``-``) and come (``+``)."""
    return [line for line in difflib.ndiff(record, now) if line[0] in "+-"]


def not_named(changed: list[str], changelog: str) -> list[str]:
    """Return the public names among `changed` that the section Unreleased does not name."""
    section = changelog.partition("## [Unreleased]")[2].partition("\n## [")[0]
    names = {re.match(r"[+-] (?:class )?(\w+)", line)[1] for line in changed}  # type: ignore[index]
    return sorted(name for name in names if not re.search(rf"\bhopforge\.{name}\b", section))


def main() -> int:
    """Compare, or write the record."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--write", action="store_true")
    write = options.parse_args().write
    now = public_lines()
    changed = differences(RECORD.read_text().splitlines() if RECORD.exists() else [], now)
    missing = not_named(changed, CHANGELOG.read_text())
    for line in changed:
        sys.stdout.write(f"{line}\n")
    if missing:
        names = ", ".join(f"hopforge.{name}" for name in missing)
        sys.stderr.write(f"CHANGELOG.md: Unreleased does not name {names}\n")
        return 1
    if write:
        RECORD.write_text("".join(f"{line}\n" for line in now))
        return 0
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
