"""The cycle-exact twin of the router and the network simulator that is made of it (docs/definitions/router.md)."""
