"""`python -m hopforge` is the same as `hopforge`."""

from hopforge import interrupts


def main() -> None:
    """Run the command line; a signal while it is loaded ends it with one line, too."""
    interrupts.end_at_once()
    from hopforge.cli import main as run  # noqa: PLC0415 - what takes time, and can be interrupted

    try:
        run()
    except SystemExit as ended:
        interrupts.leave(ended.code)
        raise


if __name__ == "__main__":
    main()
