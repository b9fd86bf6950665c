"""The input-output-queued router with crossbar speed-up (docs/router-models.md), apart from `model.network`."""
