"""The import watcher waits for the modules that remedies change, and only where remedies are asked for."""

from importlib import import_module
from typing import Set

import pytest

from ddp_probe.activation import targets
from ddp_probe.shared import settings


def _of_remedies() -> Set[str]:
    remedies = [import_module("ddp_probe.traced.remedies." + name.replace("-", "_")).REMEDY for name in settings.REMEDIES]
    return {target.partition(":")[0] for remedy in remedies for target in remedy.targets}


def test_every_module_of_a_remedy_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With DDP_PROBE_FIX a rank waits for each module that a remedy asked for has a target in, whether a probe has one there or not."""
    monkeypatch.setenv("DDP_PROBE_FIX", "auto")
    assert _of_remedies() <= set(targets.modules("rank"))
    monkeypatch.setenv("DDP_PROBE_FIX", "mmengine-device")
    assert set(targets.modules("rank")) - {row.module for row in targets.rows("rank")} == {"mmengine.device.utils"}


@pytest.mark.parametrize(("role", "fix"), [("rank", ""), ("launcher", "auto"), ("helper", "auto")])
def test_nobody_else_waits_for_them(monkeypatch: pytest.MonkeyPatch, role: str, fix: str) -> None:
    """Without DDP_PROBE_FIX, and in a launcher or a helper, they are not waited for."""
    monkeypatch.setenv("DDP_PROBE_FIX", fix)
    of_probes = {targets.PROMOTES} if role == "helper" else {row.module for row in targets.rows(role)}
    assert set(targets.modules(role)) == of_probes
