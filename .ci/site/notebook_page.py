"""A notebook as a page: its text, its code, and the outputs that it ships with."""

import base64
import json
import re
from pathlib import Path
from typing import Any

_MARK = "!!notebook"


def pages(path: Path, place: str) -> dict[str, str | bytes]:
    """Return the page of a notebook and its pictures, by their places on the site."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    stem = place.removesuffix(".ipynb")
    name = stem.rpartition("/")[2]
    made: dict[str, str | bytes] = {}
    parts = []
    for cell in cells:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts.append(_shown(output, name, stem, made))
    head, _, rest = "\n\n".join(part for part in parts if part).partition("\n")
    told = f"This page is the notebook `docs/{place}`; open it in Jupyter to change and run it."
    made[f"{stem}.md"] = f"{head}\n\n{told}\n{rest}\n"
    return made


def _shown(output: dict[str, Any], name: str, stem: str, made: dict[str, str | bytes]) -> str:
    if output["output_type"] == "stream":
        return _block("".join(output["text"]))
    data = output.get("data", {})
    if "image/png" in data:
        return _picture(base64.b64decode("".join(data["image/png"])), name, stem, made)
    if "text/html" in data:
        html = "".join(data["text/html"])
        pictures = []
        for image in re.findall(r'<img[^>]*base64,([^"]+)"[^>]*>', html):
            pictures.append(_picture(base64.b64decode(image), name, stem, made))
        html = re.sub(r"<img[^>]*>|<style.*?</style>", "", html, flags=re.DOTALL)
        html = re.sub(r"\n\s*", "\n", html).strip()
        return "\n\n".join([f'<div class="notebook-output">{html}</div>', *pictures])
    return _block("".join(data.get("text/plain", "")))


def _picture(png: bytes, name: str, stem: str, made: dict[str, str | bytes]) -> str:
    number = sum(place.startswith(f"{stem}-") for place in made) + 1
    made[f"{stem}-{number}.png"] = png
    return f"![Output of the cell above]({name}-{number}.png)"


def _block(text: str) -> str:
    return f"```{{.text .notebook-output}}\n{text.rstrip()}\n```" if text.strip() else ""
