"""The lookup path: keys, routing cache, TCAM, and the engine that joins them."""
