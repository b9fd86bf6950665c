"""Files that runs write: tables, metadata, plots."""
