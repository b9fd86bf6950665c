"""How to get a package of an extra that is not installed."""

import importlib.metadata
import re


def pip_command(package: str) -> str:
    """Return the command that installs `package` in a version that hopforge works with.

    It names the package itself and not an extra of hopforge, which need not come from an index.

    Examples
    --------
    >>> pip_command("no-such-package")
    "pip install 'no-such-package'"
    """
    for line in importlib.metadata.requires("hopforge") or []:
        requirement = line.split(";", 1)[0].strip()
        if re.match(rf"{re.escape(package)}\b", requirement):
            return f"pip install '{requirement}'"
    return f"pip install '{package}'"
