"""The `if` under which a model uses one of its parts."""

import os
import time
from pathlib import Path

import pytest

from ddp_probe.standing.used_parts import used_under

MODEL = """\
class TwoTowers(nn.Module):
    def __init__(self):
        self.picture = nn.Linear(8, 4)
        self.sound = nn.Linear(3, 4)
        self.head = nn.Linear(4, 4)

    def forward(self, picture, sound, has_sound):
        hidden = self.picture(picture)
        if has_sound.any():
            hidden = hidden + self.sound(sound)
        return self.head(hidden)
"""


def test_the_condition_around_the_only_use_is_named(tmp_path: Path) -> None:
    """The line and the text of the innermost `if` are told, of the file that holds the class."""
    file = tmp_path / "model.py"
    file.write_text(MODEL, encoding="utf-8")
    under = used_under([str(tmp_path / "none.py"), str(file)], "TwoTowers", "sound", time.time() + 9)
    assert under is not None
    assert (under.part, under.site.file, under.site.line) == ("sound", str(file), 9)
    assert under.condition.text == "if has_sound.any()"


@pytest.mark.parametrize(
    ("model", "part", "added"),
    [
        ("TwoTowers", "picture", ""),
        ("OneTower", "sound", ""),
        ("TwoTowers", "sound", "\n    def embed(self, sound):\n        return self.sound(sound)\n"),
    ],
    ids=["always", "another class", "elsewhere as well"],
)
def test_a_part_used_otherwise_has_no_condition(tmp_path: Path, model: str, part: str, added: str) -> None:
    """A part used under no `if`, or at two places, is not explained; nor is one of another class."""
    file = tmp_path / "model.py"
    file.write_text(MODEL + added, encoding="utf-8")
    assert used_under([str(file)], model, part, time.time() + 9) is None


def test_source_that_has_changed_since_says_nothing(tmp_path: Path) -> None:
    """A file that is newer than the failure is not believed."""
    file = tmp_path / "model.py"
    file.write_text(MODEL, encoding="utf-8")
    os.utime(file, (500.0, 500.0))
    assert used_under([str(file)], "TwoTowers", "sound", 400.0) is None
