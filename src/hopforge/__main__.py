"""`python -m hopforge` is the same as `hopforge`."""

import gc

from hopforge import interrupts

#: objects made until Python looks for garbage: a design is hundreds of thousands that all stay, and with Python's own
#: 700 a fifth of the time in which Verilog is made of it goes into looking at them
GARBAGE_AFTER = 100_000


def main() -> None:
    """Run the command line; a signal while it is loaded ends it with one line, too."""
    interrupts.end_at_once()
    gc.set_threshold(GARBAGE_AFTER, 20, 20)
    from hopforge.cli import main as run  # noqa: PLC0415 - what takes time, and can be interrupted

    try:
        run()
    except SystemExit as ended:
        interrupts.leave(ended.code)
        raise


if __name__ == "__main__":
    main()
