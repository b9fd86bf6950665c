"""The commands of the command line, by group; `hopforge.cli` puts them together."""
