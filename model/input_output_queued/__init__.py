"""The input-output-queued router with crossbar speed-up (definitions/router-models.md), apart from `model.network`."""
