"""Settings that are numbers have bounds: what is outside is said once, with the bound and the value, and the default is used."""

import json
from pathlib import Path
from typing import Any

import pytest

from ddp_probe.shared import settings

_SECONDS = "a number of seconds from 0.1 to 1000000000, or one with s, m or h"
_BYTES = "a number of bytes from 65536 to 1099511627776, or one with k, m or g"
_OUTSIDE = [
    *[(settings.HANG_AFTER, text, _SECONDS + "; or off") for text in ("0.01", "-1", "1e10", "nan", "inf", "soon", "0.01m3")],
    *[(setting, "0.09", _SECONDS + "; or off") for setting in (settings.CARDS, settings.STATE_EVERY)],
    *[(settings.TIMEOUT, text, _SECONDS) for text in ("0", "0.05s")],
    *[(settings.MAX_BYTES, text, _BYTES) for text in ("3", "63k", "0", "1025g", "many")],
]


@pytest.mark.parametrize(("setting", "text", "bounds"), _OUTSIDE, ids=lambda part: getattr(part, "name", part))
def test_a_value_outside_its_bounds_is_not_used(setting: Any, text: str, bounds: str) -> None:
    """The default is used, and a sentence has the name, the value, the bounds and that default."""
    environ = {setting.name: text}
    assert settings.get(setting, environ) == settings.get(setting, {})
    (said,) = settings.replaced(environ)
    used = setting.default or "The default"
    assert said == "%s is %s. The value must be %s. %s is used." % (setting.name, text, bounds, used)


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (settings.HANG_AFTER, "0.1", 0.1),
        (settings.HANG_AFTER, "100m", 6000.0),
        (settings.HANG_AFTER, "off", None),
        (settings.CARDS, "0", None),
        (settings.TIMEOUT, "1000000000", 1e9),
        (settings.MAX_BYTES, "64k", 1 << 16),
        (settings.MAX_BYTES, "1024g", 1 << 40),
    ],
    ids=lambda part: getattr(part, "name", str(part)),
)
def test_the_bounds_themselves_are_used(setting: Any, text: str, value: Any) -> None:
    """The least and the most are allowed, and off stays off."""
    assert settings.get(setting, {setting.name: text}) == value
    assert settings.replaced({setting.name: text}) == []


def test_it_is_said_once_and_the_job_goes_on(torchrun: Any, armed: Any, tmp_path: Path) -> None:
    """Below a launcher with two ranks one line stands on stderr, the job is as without, and each log has the mistake."""
    program = tmp_path / "job.py"
    program.write_text("import torch, torch.distributed as dist\ndist.init_process_group('gloo')\nprint('done')\ndist.destroy_process_group()\n")
    done = torchrun(program, env=armed(tmp_path / "runs", DDP_PROBE_HANG_AFTER="0.01"), cwd=tmp_path)
    assert (done.returncode, done.stdout.count("done")) == (0, 2), done.stderr
    (said,) = [line for line in done.stderr.splitlines() if line.startswith("ddp_probe")]
    assert "DDP_PROBE_HANG_AFTER is 0.01. The value must be a number of seconds from 0.1 to" in said
    assert said.endswith("60 is used.")
    logs = {path.resolve() for path in (tmp_path / "runs").rglob("rank*.jsonl")}
    assert len(logs) == 2
    for log in logs:
        assert "DDP_PROBE_HANG_AFTER" in json.loads(log.read_text().splitlines()[0])["settings"]
