"""The golden router, and what is programmed into it."""
