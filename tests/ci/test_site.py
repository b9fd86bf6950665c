"""The site of the documentation: built strictly, whole without a network, its gallery and its Python page complete."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import hopforge

ROOT = Path(__file__).parents[2]
MOST_GALLERY_BYTES = 1_500_000
#: where a page may lead to; what it loads must lie in the site
LOADED = re.compile(r'<(?:script|img|iframe|source)\b[^>]*\bsrc="([^"]+)"|<link\b[^>]*\bhref="([^"]+)"', re.IGNORECASE)


def module(name: str, path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


GALLERY = module("gallery", ROOT / ".ci" / "gallery.py")
DIALECT = module("dialect", ROOT / ".ci" / "site" / "dialect.py")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site") / "site"
    words = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages(site: Path) -> list[Path]:
    found = sorted(site.rglob("*.html"))
    assert len(found) > 80
    return found


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    loaded = 0
    for page in pages(site):
        for script, link in LOADED.findall(page.read_text(encoding="utf-8")):
            target = script or link
            if target.startswith("data:") or page.name == "404.html":
                continue
            assert "//" not in target, f"{page.name}: {target}"
            assert (page.parent / unquote(target.partition("?")[0].partition("#")[0])).exists(), f"{page}: {target}"
            loaded += 1
    assert loaded > 500


def test_no_page_names_a_place_of_this_machine(site: Path) -> None:
    places = {str(ROOT), str(Path.home()) + "/", str(site.parent), sys.prefix}
    for page in pages(site):
        text = page.read_text(encoding="utf-8")
        assert [place for place in places if len(place) > 5 and place in text] == [], page.name


def test_every_shelf_and_every_page_can_be_searched(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"index.html", "contents.html", "definitions/python-reference.html", "start/gallery.html"} <= found
    assert {page.relative_to(site).as_posix() for page in pages(site) if page.name != "404.html"} == found
    assert (site / "search" / "search_index.js").exists()  # for a site that is opened from a folder


def test_the_python_page_has_every_public_name(site: Path) -> None:
    text = (site / "definitions" / "python-reference.html").read_text(encoding="utf-8")
    names = [name for name in hopforge.__all__ if not name.startswith("_")]
    assert len(names) > 20
    assert [name for name in names if f'id="hopforge.{name}"' not in text] == []
    assert "Compute routing tables and virtual layers" in text  # docstrings, not only names


def test_lists_and_tables_are_those_of_github() -> None:
    text = "Words:\n- one\n  - two\n\n- three\n\nAfter\n| a |\n|---|\n```\n- no list\n  x\n```\n"
    changed = DIALECT.for_python_markdown(text)
    assert changed == (
        "Words:\n\n- one\n    - two\n\n- three\n\nAfter\n\n| a |\n|---|\n```\n- no list\n  x\n```\n"
    )


def test_the_gallery_shows_ten_small_pictures() -> None:
    entries = GALLERY.entries()
    text = GALLERY.PAGE.read_text(encoding="utf-8")
    assert len(entries) == 10 == text.count("](../pictures/") == len(re.findall(r"^## ", text, re.MULTILINE))
    assert len({entry.kept for entry in entries}) == 10
    sizes = [entry.kept.stat().st_size for entry in entries]
    assert all(entry.kept.read_bytes().startswith(b"\x89PNG") for entry in entries)
    assert sum(sizes) < MOST_GALLERY_BYTES, sizes


@pytest.mark.study
def test_every_picture_of_the_gallery_is_what_its_command_draws(tmp_path: Path) -> None:
    (tmp_path / "configs").symlink_to(ROOT / "configs")
    for entry in GALLERY.entries():
        copy = entry._replace(kept=tmp_path / "kept" / entry.kept.name)
        GALLERY.draw(copy, tmp_path)
        assert copy.kept.read_bytes() == entry.kept.read_bytes(), entry.command
