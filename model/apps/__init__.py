"""Programs written from their published definitions: what every rank calls, as if it had been recorded."""
