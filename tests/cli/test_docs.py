"""What the documentation tells people to type exists and does what it says; its pages keep the rules of style."""

import importlib
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer.main
from typer.testing import CliRunner

from hopforge import cli
from hopforge.model.config import ConfigError, load_config, parse_config

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SHELVES = ("start", "guides", "definitions", "results")
#: what lies in docs/results/data are parts of pages
PAGES = [
    ROOT / "README.md", ROOT / "CONTRIBUTING.md",
    *sorted(page for page in DOCS.rglob("*.md") if page.parent.name != "data"),
]  # fmt: skip
GENERATED = [page for page in PAGES if page.parent.name == "results" or page.name in ("configuration.md", "columns.md")]
WRITTEN = [page for page in PAGES if page not in GENERATED]
GUIDES = [page for page in PAGES if page.parent.name == "guides"]
CONFIGS = sorted((ROOT / "configs").rglob("*.yml"))
MOST_CHARACTERS, MOST_GUIDE_WORDS = 120, 2500


def place(page: Path) -> str:
    return str(page.relative_to(ROOT))


def without_code(text: str) -> str:
    """Text with empty lines for blocks of code, so that line numbers stay."""
    return re.sub(
        r"^( *)```.*?^\1```$", lambda found: "\n" * found[0].count("\n"), text, flags=re.DOTALL | re.MULTILINE
    )


def visible(text: str) -> str:
    """What a reader sees of a line: the target of a link is not."""
    return re.sub(r"\]\([^)]*\)", "]", re.sub(r"https?://\S+", "", text))


def prose(page: Path) -> Iterator[tuple[int, str]]:
    lines = without_code(page.read_text(encoding="utf-8")).splitlines()
    yield from ((number, line) for number, line in enumerate(lines, 1) if not line.startswith("|"))


def cells(page: Path) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(without_code(page.read_text(encoding="utf-8")).splitlines(), 1):
        if line.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|")))


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, made as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", without_code(page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", visible(heading).lower()).replace(" ", "-") for heading in headings}


def links(page: Path) -> list[str]:
    return re.findall(r"\]\(([^)\s]+)\)", without_code(page.read_text(encoding="utf-8")))


def command_lines() -> list[tuple[str, str]]:
    """Every ``hopforge ...`` that stands alone in a code block, in backquotes or in the comments of a configuration."""
    found = []
    for page in PAGES + CONFIGS:
        text = page.read_text(encoding="utf-8")
        lines = re.findall(r"`(hopforge [^`\n]+)`", text)
        blocks = text if page in CONFIGS else "\n".join(re.findall(r"^ *```.*?^ *```", text, re.DOTALL | re.MULTILINE))
        lines += re.findall(r"^(?:# +)? *(hopforge [a-z][^#\n]*)", blocks, re.MULTILINE)
        found += [(place(page), line.split("  ")[0].split(" > ")[0].strip()) for line in lines]
    return found


def test_every_command_in_the_documentation_exists_with_its_options() -> None:
    lines = command_lines()
    assert len(lines) > 100
    program = typer.main.get_command(cli.app)
    for page, line in lines:
        command = program
        words = line.split()[1:]
        while words and hasattr(command, "commands"):
            if words[0].startswith("-"):
                break
            if command.name == "fpga" and words[0] not in command.commands:
                words.insert(0, "build")  # the word may be left out
            assert words[0] in command.commands, f"{page}: {line}"
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
        for word in words:
            if word == "--":
                break
            if word.startswith("-"):
                assert word.split("=")[0] in known, f"{page}: {line}: {word}"


def test_every_configuration_in_the_documentation_exists() -> None:
    named = [
        (place(page), name)
        for page in PAGES
        for name in re.findall(r"configs/[\w/*.\-]+\.(?:yml|py|c|txt|anynet)\b", page.read_text(encoding="utf-8"))
    ]
    assert len(named) > 50
    assert [(page, name) for page, name in named if not list(ROOT.glob(name))] == []


def test_links_and_anchors_lead_somewhere() -> None:
    found = [(page, link) for page in PAGES for link in links(page) if not link.startswith(("http:", "https:"))]
    assert len(found) > 100
    broken = []
    for page, link in found:
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{place(page)}: {link}")
    assert broken == []


def test_every_page_stands_on_a_shelf_and_in_the_index() -> None:
    assert sorted(page.name for page in DOCS.glob("*.md")) == ["README.md", "architecture.md"]
    pages = [page for page in PAGES if page.parent != ROOT and page.name != "README.md"]
    assert {page.parent.name for page in pages if page.parent != DOCS} == set(SHELVES)
    index = {(DOCS / link.partition("#")[0]).resolve() for link in links(DOCS / "README.md")}
    assert [place(page) for page in pages if page not in index] == []
    assert "docs/README.md" in links(ROOT / "README.md")


def test_every_picture_is_shown_by_a_page() -> None:
    shown = {(page.parent / link).resolve() for page in PAGES for link in links(page)}
    pictures = sorted(path for path in (DOCS / "pictures").rglob("*") if path.is_file())
    assert pictures
    assert [place(picture) for picture in pictures if picture not in shown] == []


@pytest.mark.parametrize("page", PAGES, ids=place)
def test_rows_of_a_table_have_the_cells_of_its_head(page: Path) -> None:
    """A bar inside a cell has to be written as \\|, or the rest of the row is cut."""
    wrong, head, code = [], None, False
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        if code or not line.startswith("|"):
            head = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        head = cells if head is None else head
        wrong += [number] if cells != head else []
    assert wrong == []


@pytest.mark.parametrize("page", WRITTEN, ids=place)
def test_lines_of_prose_are_short(page: Path) -> None:
    long = [number for number, line in prose(page) if len(visible(line)) > MOST_CHARACTERS]
    assert long == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name != "results"], ids=place)
def test_cells_of_tables_are_short(page: Path) -> None:
    long = [number for number, cell in cells(page) if len(visible(cell)) > MOST_CHARACTERS]
    assert long == []


@pytest.mark.parametrize("page", GUIDES, ids=place)
def test_guides_are_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= MOST_GUIDE_WORDS


@pytest.mark.parametrize("page", GENERATED, ids=place)
def test_generated_pages_name_their_command_first(page: Path) -> None:
    first = "\n".join(page.read_text(encoding="utf-8").splitlines()[:8])
    assert re.search(r"`(?:hopforge|make) [a-z]", first)


def test_rules_of_style_see_what_breaks_them(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = "x" * (MOST_CHARACTERS + 1)
    page.write_text(f"# A `b`: c\n{long}\n```\n{long}\n```\n| a | {long} |\n[x](https://{long})\n", encoding="utf-8")
    assert [number for number, line in prose(page) if len(visible(line)) > MOST_CHARACTERS] == [2]
    assert [number for number, cell in cells(page) if len(visible(cell)) > MOST_CHARACTERS] == [6]
    assert anchors(page) == {"a-b-c"}


def test_pages_that_code_and_configurations_name_exist() -> None:
    folders = [
        ROOT / name for name in ("src", "model", "hw", "gen", "sim", "configs", "tests") if (ROOT / name).is_dir()
    ]
    files = {file.resolve() for folder in folders for kind in ("*.py", "*.yml") for file in folder.rglob(kind)}
    named = {
        (str(file.relative_to(ROOT)), name)
        for file in files
        for name in re.findall(r"\bdocs/([\w/-]+\.md)\b", file.read_text(encoding="utf-8"))
    }
    assert len(named) > 50
    assert sorted((file, name) for file, name in named if not (DOCS / name).is_file()) == []


def exists(dotted: str, name: str) -> bool:
    """Whether ``dotted`` is a module (with `name`, if there is one) or a name within a module."""
    places = [(dotted, name)] if name else [(dotted, ""), (dotted.rpartition(".")[0], dotted.rpartition(".")[2])]
    for module, attribute in places:
        try:
            found = importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        if not attribute or hasattr(found, attribute):
            return True
    return False


def test_python_modules_in_the_documentation_exist() -> None:
    found = set()
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for module, names in re.findall(r"^ *from (hopforge[\w.]*) import ([\w, ]+)$", text, re.MULTILINE):
            found |= {(place(page), module, name.strip()) for name in names.split(",")}
        for dotted in re.findall(r"`(hopforge(?:\.\w+)+)`", text):
            found.add((place(page), dotted, ""))
    assert len(found) > 5
    assert [(page, f"{dotted} {name}") for page, dotted, name in sorted(found) if not exists(dotted, name)] == []


def test_parts_of_the_program_are_where_the_documentation_says() -> None:
    found = set()
    for page in PAGES:
        for dotted in re.findall(r"`((?:hw|gen|model|sim)(?:\.\w+)+)`", page.read_text(encoding="utf-8")):
            found.add((place(page), f"hopforge.{dotted}"))
    assert len(found) > 30
    assert [each for each in sorted(found) if not (is_module(each[1]) or exists(each[1], ""))] == []


def is_module(dotted: str) -> bool:
    """Whether there is a module, which is not imported: some need extras."""
    try:
        return importlib.util.find_spec(dotted) is not None
    except ModuleNotFoundError:
        return False


def test_files_of_a_reader_import_from_one_place() -> None:
    for page, source in (("routing-of-your-own.md", "model.routing"), ("traffic-of-your-own.md", "sim.traffic")):
        text = (DOCS / "guides" / page).read_text(encoding="utf-8")
        assert set(re.findall(r"from hopforge\.([\w.]+) import", text)) == {source}


def test_configurations_that_the_readers_are_shown(tmp_path: Path) -> None:
    page = (DOCS / "start" / "getting-started.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    config = parse_config(text)
    assert config.lookup.cache.ways == 4
    path = tmp_path / "mine.yml"
    path.write_text(text.replace("ways: 4", "ways: 3"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert f"hopforge: {str(caught.value).removeprefix(f'{tmp_path}/')}\n" in page


def test_readme_shows_what_its_configuration_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", readme, re.DOTALL)
    assert len(text.splitlines()) <= 10
    (shown,) = re.findall(r"^```\n(offered load .*?)```", readme, re.DOTALL | re.MULTILINE)
    assert len(shown.splitlines()) == 6
    path = tmp_path / f"{parse_config(text).name}.yml"
    path.write_text(text, encoding="utf-8")
    monkeypatch.setenv("COLUMNS", "120")
    result = CliRunner().invoke(cli.app, ["net", str(path), "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    printed = {line.rstrip() for line in result.output.splitlines()}
    assert [line for line in shown.splitlines() if line not in printed] == []
