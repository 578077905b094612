"""Recorded logs of the rule collective-on-one-rank."""

DESYNC_REPORT_SAYS_THAT_RANK_0 = r"""
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"torch.distributed.DistBackendError","message":"[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600123 milliseconds before timing out.\n\t - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:\n\t   - [0] joined but didn't finish collective #12 (count from 1)\n\t     [1, 2, 3] finished collective #11, but didn't join collective #12 (count from 1)"}}
"""

ALL_RANKS_BUT_ONE_ARE_IN_COLLECTIVE = r"""
{"event":"process.end","rank":0,"exit_code":1,"uncaught":true,"failure":{"type":"torch.distributed.DistBackendError","message":"the desync are:\n  - [3] finished collective #11, but didn't join collective #12 (count from 1)\n  [0, 1, 2] joined but didn't finish collective #12"}}
"""

TEXT_OF_FAILURE_IS_ALL_THERE = """torch.distributed.DistBackendError: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, Timeout(ms)=600000) ran for 600123 milliseconds before timing out.
	 - To our best knowledge, the lagging/dead/mismatched ranks that caused the desync are:
	   - [0] joined but didn't finish collective #12 (count from 1)
	     [1, 2, 3] finished collective #11, but didn't join collective #12 (count from 1)"""
