"""What MkDocs asks while it builds the site: shelves, pages that lie elsewhere or are generated, links between them."""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

import dialect
import notebook_page
import python_page
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[2]
#: file of the repository -> page of the site, where docs/PAGE.md is not PAGE.md
PLACES = {
    "README.md": "index.md", "docs/README.md": "contents.md", "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md", "CITATION.cff": "CITATION.cff",
}  # fmt: skip
PYTHON_PAGE = "definitions/python-reference.md"
_LINK = re.compile(r"\[(?P<words>[^\]]*)\]\((?P<target>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_ROW = re.compile(r"^\| \[[^\]]+\]\(([^)]+)\)")


def on_config(config: Any) -> Any:
    """Take the shelves from docs/README.md."""
    config.nav = shelves((ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    return config


def shelves(index: str) -> list[Any]:
    """Return the navigation: home, then a shelf for each second heading, its parts by third headings."""
    found: dict[str, dict[str, list[str]]] = {}
    shelf = part = ""
    for line in index.splitlines():
        if line.startswith("## "):
            shelf, part = line[3:], ""
        elif line.startswith("### "):
            part = line[4:]
        elif row := _ROW.match(line):
            found.setdefault(shelf, {}).setdefault(part, []).append(_page("docs/" + row[1]))
    found["Definitions"][""].append(PYTHON_PAGE)
    nav: list[Any] = [{"Home": ["index.md", "contents.md", "contributing.md", "changelog.md"]}]
    for shelf, parts in found.items():
        entries: list[Any] = []
        for part, pages in parts.items():
            entries += [{part: pages}] if part else pages
        nav.append({shelf: entries})
    return nav


def on_files(files: Files, config: Any) -> Files:
    """Add the pages that lie outside docs/ or are generated."""
    files.remove(files.get_file_from_path("README.md"))
    made = {place: (ROOT / source).read_text(encoding="utf-8") for source, place in PLACES.items()}
    made[PYTHON_PAGE] = python_page.text()
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            made |= notebook_page.pages(ROOT / "docs" / file.src_uri, file.src_uri)
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links lead to pages of the site."""
    source = next((old for old, new in PLACES.items() if new == page.file.src_uri), f"docs/{page.file.src_uri}")
    return dialect.for_python_markdown(_LINK.sub(lambda link: _moved(link, source, page.file.src_uri), markdown))


def _moved(link: re.Match[str], source: str, place: str) -> str:
    target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link["target"]))
    if not (target in PLACES or target.startswith("docs/")):
        return link[0]
    path = posixpath.relpath(_page(target), posixpath.dirname(place) or ".")
    return f"[{_words(link['words'], target)}]({path}{link['anchor'] or ''})"


def _words(words: str, target: str) -> str:
    """Name a page by its heading where the text names its file."""
    if words != posixpath.basename(target) or not (ROOT / target).is_file():
        return words
    heading = re.search(r"^# (.+)$", _text(ROOT / target), re.MULTILINE)
    return heading[1] if heading else words


def _text(path: Path) -> str:
    if path.suffix == ".ipynb":
        return "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    return path.read_text(encoding="utf-8")


def _page(target: str) -> str:
    """Return the page of the site for a file of the repository."""
    return PLACES.get(target, target.removeprefix("docs/").removesuffix(".ipynb") + ".md" * target.endswith(".ipynb"))
