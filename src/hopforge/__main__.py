"""`python -m hopforge` is the same as `hopforge`."""

from hopforge.cli import main

if __name__ == "__main__":
    main()
