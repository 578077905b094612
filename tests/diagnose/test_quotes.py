"""What an undecided answer quotes of a plain log is the line that tells of the failure, not what stands around it."""

import pytest

from ddp_probe.judging.judge import judge
from ddp_probe.reading.load_run import from_lines

TABLE = """torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
"""
PROGRESS = """ 12%|█▏        | 12/100 [00:01<00:09,  9.21it/s]
warning: timed out once, going on
the queue frobnicated and failed for good
"""
USAGE = """usage: train.py [-h] [--lr LR] CONFIG
train.py: error: the following arguments are required: CONFIG
"""


@pytest.mark.parametrize(("log", "noise"), [(TABLE, "===="), (PROGRESS, "12%"), (PROGRESS, "warning:"), (USAGE, "usage:")])
def test_noise_is_never_quoted(log, noise):
    """Neither a ruler, nor a progress bar, nor a warning before it, nor a usage text is called the failure."""
    assert all(noise not in answer.because for answer in judge(from_lines(log)).undecided)


def test_the_line_that_failed_is_quoted():
    """The first line that must tell of trouble is what is quoted."""
    assert "the queue frobnicated and failed for good" in judge(from_lines(PROGRESS)).undecided[0].because
