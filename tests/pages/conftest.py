"""A folder in which a page's commands print what the page shows."""

from pathlib import Path

import pytest
from page_scene import Scene

from ddp_probe.shared import settings


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Scene:
    """The folder of a job, as wide as the pages, in their language, without a variable of ours or of a pipeline."""
    for name in (*(setting.name for setting in settings.SETTINGS), "GITHUB_STEP_SUMMARY", "NO_COLOR", "FORCE_COLOR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    (tmp_path / "train").mkdir()
    monkeypatch.chdir(tmp_path / "train")
    return Scene(tmp_path / "train", capfd)
