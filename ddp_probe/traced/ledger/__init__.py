"""The ledger: a record of every collective, point-to-point call and phase of a rank, in memory and in a file beside its log.

It is armed by the session when the job calls init_process_group, and taken out with everything else. Its functions are watched by a swap of
their code, not by a wrapper, and what runs around a call is written for speed: docs/contributing/decisions/0021-ledger.md says why.
"""

from ddp_probe.traced.ledger.collectives import Collectives

__all__ = ["Collectives"]
