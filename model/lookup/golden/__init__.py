"""The lookup engine cycle by cycle: the golden model that the hardware is compared with.

Written from docs/definitions/lookup-engine.md alone, for clarity, a file for each section of that page: `ports`,
`operations`, `engine` (stages), `deep` (stages from depth 5 on), `control` (flush, registers), `mshrs`, `cache` and
`replacement`, `keys`, `tcam`. `build.golden_engine` returns the engine of any depth.
`model.lookup.fast` is the same machine as a numba kernel, for long runs.
"""
