"""What the documentation tells people to type exists and does what it says."""

import re
from pathlib import Path

import pytest
import typer.main

from hopforge import cli
from hopforge.model.config import ConfigError, load_config, parse_config

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "configs").glob("*.yml"))]


def command_lines() -> list[tuple[str, str]]:
    """Every ``hopforge ...`` that stands alone in a code block, in backquotes or in the comments of a configuration."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = re.findall(r"`(hopforge [^`\n]+)`", text)
        lines += re.findall(r"^(?:# +)?(hopforge [a-z][^#\n]*)", text, re.MULTILINE)
        found += [(page.name, line.split("  ")[0].split(" > ")[0].strip()) for line in lines]
    return found


def test_every_command_in_the_documentation_exists_with_its_options() -> None:
    lines = command_lines()
    assert len(lines) > 15
    for page, line in lines:
        command = typer.main.get_command(cli.app)
        words = line.split()[1:]
        while words and hasattr(command, "commands"):
            if words[0].startswith("-"):
                break
            assert words[0] in command.commands, f"{page}: {line}"
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts} | {"--help", "-h"}
        for word in words:
            if word.startswith("-"):
                assert word.split("=")[0] in known, f"{page}: {line}: {word}"


def test_links_between_pages_lead_somewhere() -> None:
    links = [
        (page, link) for page in PAGES for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    ]
    assert len(links) > 5
    for page, link in links:
        assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pages = sorted((ROOT / "docs").glob("*.md"))
    assert len(pages) > 5
    assert [page.name for page in pages if f"(docs/{page.name})" not in readme] == []


def test_configurations_that_the_readers_are_shown(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "getting-started.md").read_text(encoding="utf-8")
    (text,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    config = parse_config(text)
    assert config.lookup.cache.ways == 4
    path = tmp_path / "mine.yml"
    path.write_text(text.replace("ways: 4", "ways: 3"), encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert f"hopforge: {str(caught.value).removeprefix(f'{tmp_path}/')}\n" in page
