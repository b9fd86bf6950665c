"""Command line of hopforge: every command parses, calls one function, and turns a user's mistake into one line."""

import sys

import typer

app = typer.Typer(name="hopforge", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def hopforge() -> None:
    """From one YAML file of a switch and its network: Verilog, co-simulation, hit rates, reproduced figures."""


def main() -> None:
    """Entry point of the console script."""
    sys.exit(app())


if __name__ == "__main__":
    main()
