"""The lookup engine cycle by cycle: the golden model that the hardware is compared with.

Written from docs/definitions/lookup-engine.md alone, for clarity, a file for each section of that page: `ports`,
`operations` and `engine` (stages, flush, registers), `mshrs`, `cache` and `replacement`, `keys`, `tcam`.
`model.lookup.fast` is the same machine as a numba kernel, for long runs.
"""
