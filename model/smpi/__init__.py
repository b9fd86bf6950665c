"""SimGrid's SMPI as an engine: programs replayed, or compiled programs run, on an exported platform."""
