"""The place of each rank: where it stands, who waits for whom, who left the sequence that all share, and which statement of the job took them apart.

One engine for the rules, for `watch` and for the launcher's child; it reads ledgers and the job's source, and no logs.
"""
