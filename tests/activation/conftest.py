"""Trees of real processes under the probe, and what they leave."""

from pathlib import Path

import pytest


class Runs:
    """The folder that collects the runs of one test."""

    def __init__(self, root):
        self.root = root

    def folders(self):
        """Every run's folder, by name."""
        if not self.root.exists():
            return []
        return sorted(path for path in self.root.iterdir() if path.is_dir() and not path.is_symlink())

    def only(self):
        """The one run that there has to be."""
        folders = self.folders()
        assert len(folders) == 1, folders
        return folders[0]

    def kinds(self):
        """What lies in the one run, as 'rank00000' or 'launcher'."""
        return sorted(path.name.split(".")[0] for path in self.only().iterdir() if path.suffix == ".jsonl")


@pytest.fixture
def runs(tmp_path):
    """The runs that this test leaves."""
    return Runs(tmp_path / "runs")


@pytest.fixture
def probe_env(armed, runs):
    """An environment in which each interpreter is armed, as 'python -m ddp_probe run' makes it."""
    return lambda **extra: armed(runs.root, **extra)


@pytest.fixture
def script(tmp_path):
    """Write a program and return its path."""

    def write(text, name="train.py"):
        path = Path(tmp_path) / name
        path.write_text(text)
        return path

    return write
