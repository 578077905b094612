"""The folder in which the source of a job is looked for."""

from pathlib import Path

import pytest

from ddp_probe.reading import job_source


def test_relative_paths_begin_where_the_job_ran(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader in another folder, even one with a file of that name, reads the job's; absolute paths stay."""
    job, here = tmp_path / "job", tmp_path / "here"
    for folder in (job, here):
        folder.mkdir()
        (folder / "train.py").write_text("ran = '%s'\n" % folder.name, encoding="utf-8")
    monkeypatch.chdir(here)
    with job_source.relative_to(str(job)):
        read = [job_source.read(path) for path in ("train.py", str(here / "train.py"), "")]
    assert [file and file.text for file in read] == ["ran = 'job'\n", "ran = 'here'\n", None]
    outside = job_source.read("train.py")
    assert outside is not None
    assert outside.text == "ran = 'here'\n"
