"""What the tests of checkpoints share.

command    command(*arguments) -> Done(code, out, err, objects). `checkpoint` in this process, 80 columns wide, without colours.
"""

import contextlib
import io
import json
from typing import Any, Callable, Dict, List, NamedTuple

import pytest

from ddp_probe import cli


class Done(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def objects(self) -> List[Dict[str, Any]]:
        """What --json printed."""
        found = json.loads(self.out)
        assert isinstance(found, list)
        return found


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Run `checkpoint` in this process."""

    def run(*arguments: Any) -> Done:
        monkeypatch.setenv("COLUMNS", "80")
        monkeypatch.delenv("FORCE_COLOR", raising=False)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = cli.main(["checkpoint", *[str(each) for each in arguments]])
        return Done(code, out.getvalue(), err.getvalue())

    return run
