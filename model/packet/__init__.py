"""The packet network: store-and-forward, queues per link, bubble escape, detours (docs/definitions/torus-router.md)."""
