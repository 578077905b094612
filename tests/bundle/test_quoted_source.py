"""Of the job's source a bundle holds what the report looks into, and no other function."""

import json
from pathlib import Path
from typing import Any

from ddp_probe.moving.bundle import thinned_source

RECORDED = Path(__file__).resolve().parent.parent / "recorded" / "new"
_SOURCE = '''\
import os
import torch

CURE = "the idea of a lifetime"


class Net(torch.nn.Module):
    """A model."""

    def secret_layer(self, x):
        return x * 42

    def forward(self, x):
        return self.secret_layer(x)


def idea():
    return CURE


@torch.no_grad()
def validate(model):
    model(1)


def main():
    model = Net()
    if os.environ["RANK"] == "0":
        validate(model)


if __name__ == "__main__":
    main()
'''


def test_other_functions_are_empty_lines() -> None:
    """What stays are imports, the function of the line, and each function that calls it, at the numbers that they had."""
    shown = thinned_source.thinned(_SOURCE, {23}).splitlines()
    assert len(shown) == len(_SOURCE.splitlines())
    kept = {number: line for number, line in enumerate(shown, 1) if line}
    assert all(_SOURCE.splitlines()[number - 1] == line for number, line in kept.items())
    assert sorted(kept) == [1, 2, 21, 22, 23, 26, 27, 28, 29, 32, 33]


def test_of_a_class_the_method() -> None:
    """Of a class the header and the method of the line stay."""
    text = _SOURCE.replace("    def forward", "\n" * 9 + "    def forward")
    shown = thinned_source.thinned(text, {22})
    assert "class Net" in shown
    assert "def forward" in shown
    assert "42" not in shown


def test_text_that_is_not_python() -> None:
    """A file that cannot be parsed stays as it is: the report shows lines of it."""
    assert thinned_source.thinned("def (:\n" * 9, {2}) == "def (:\n" * 9


def test_listing_says_what_was_taken_out(tmp_path: Path, bundle: Any, contents: Any) -> None:
    """A function to which the report does not look is not in the bundle, and the listing counts its bytes; --no-source leaves out the file."""
    run = tmp_path / "run"
    run.mkdir()
    program = tmp_path / "train.py"
    site = {"file": str(program), "line": 33, "function": "<module>"}
    program.write_text(_SOURCE)
    for file in (RECORDED / "03_submodule_left_behind").glob("*.jsonl"):
        text = file.read_text().replace('"/train/03_submodule_left_behind.py","line":24', '"%s","line":%d' % (site["file"], site["line"]))
        (run / file.name).write_text(text)
    files = contents(bundle([run], tmp_path / "b.tar.gz"))
    (held,) = [file for file in json.loads(files["bundle.json"])["files"] if file["kind"] == "source"]
    assert b"the idea" not in b"".join(files.values())
    assert held["bytes_left_out"] == len(_SOURCE) - len(files[held["path"]]) > 100
    assert b"main()" in files["report.txt"]
    without = contents(bundle([run], tmp_path / "c.tar.gz", source=False))
    assert not [name for name in without if name.startswith("source/")]
