"""List a wheel and check that it holds each file of the repository exactly once, under its installed name."""

import subprocess
import sys
import zipfile
from collections import Counter

FOLDERS = ("hw", "model", "gen", "sim", "configs")


def expected() -> set[str]:
    """Return the installed name of every tracked file that belongs into the wheel."""
    tracked = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True).stdout.split("\0")
    inside = {f"hopforge/{name}" for name in tracked if name.split("/", 1)[0] in FOLDERS and "/" in name}
    package = (name for name in tracked if name.startswith("src/hopforge/"))
    return inside | {name.removeprefix("src/") for name in package if name.split("/")[2] not in FOLDERS}


def main() -> int:
    """Print the contents; return 1 if anything is missing, twice there or too much."""
    with zipfile.ZipFile(sys.argv[1]) as wheel:
        names = Counter(name for name in wheel.namelist() if ".dist-info/" not in name)
        for info in sorted(wheel.infolist(), key=lambda info: info.filename):
            sys.stdout.write(f"{info.file_size:9d} {info.filename}\n")
    problems = [f"twice: {name}" for name, count in names.items() if count > 1]
    problems += [f"missing: {name}" for name in sorted(expected() - names.keys())]
    problems += [f"not in the repository: {name}" for name in sorted(names.keys() - expected())]
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
