"""The ports that tests hand to their jobs."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Optional

import ports
import pytest

_NOBODY = 65534
_ASK = """
_next = itertools.chain([%d], _candidates())
print(free_port())
"""


def test_no_port_is_handed_out_twice() -> None:
    """Ports that one process has been given are all different."""
    taken = [ports.free_port() for _ in range(20)]
    assert len(set(taken)) == len(taken)


@pytest.mark.parametrize("user", [None, _NOBODY], ids=["the same user", "another user"])
def test_another_process_passes_over_it(user: Optional[int], tmp_path: Path) -> None:
    """A port that this process was given is not given to another one, whoever runs that and whatever its temporary folder is."""
    if user is not None and os.geteuid() != 0:
        pytest.skip("Only root starts a process as another user.")
    port = ports.free_port()
    become = "" if user is None else "import os; os.setuid(%d)\n" % user
    program = Path(ports.__file__).read_text(encoding="utf-8") + become + _ASK % port
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    assert int(done.stdout) != port
