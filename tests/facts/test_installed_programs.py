"""A program that lies in site-packages, in a wheel, in a zip file, or that is run by -m, has lines: the job is what was launched."""

import sys
import zipfile

import pytest

PROGRAM = """from {package}part import work
work()
"""
PART = """import torch
import torch.distributed as dist
from {library}.helper import meet
def work():
    torch.save(1, "kept.pt")
    dist.init_process_group("gloo", init_method="file://" + __import__("os").path.abspath("meet"), rank=0, world_size=1)
    meet(dist.barrier)
    dist.destroy_process_group()
work_of = work
"""
HELPER = "def meet(call):\n    call()\n"


@pytest.fixture
def installed(tmp_path):
    """A site-packages with accelerate, of which a script is run, with a trainer of somebody's own, and a zip file beside it."""
    place = tmp_path / "lib" / "python3" / "site-packages"
    for package, folder, library in (
        ("accelerate.test_utils.scripts", place / "accelerate" / "test_utils" / "scripts", "accelerate"),
        ("somebodys", place / "somebodys", "somebodys"),
    ):
        folder.mkdir(parents=True)
        for parent in (folder, *folder.parents):
            if parent == place:
                break
            (parent / "__init__.py").touch()
        (folder / "__main__.py").write_text(PROGRAM.format(package=package + "."), encoding="utf-8")
        (folder / "check.py").write_text(PROGRAM.format(package=package + "."), encoding="utf-8")
        (folder / "part.py").write_text(PART.format(library=library), encoding="utf-8")
        (place / library / "helper.py").write_text(HELPER, encoding="utf-8")
    with zipfile.ZipFile(tmp_path / "app.pyz", "w") as file:
        file.writestr("__main__.py", PROGRAM.format(package=""))
        file.writestr("part.py", PART.format(library="somebodys"))
    return place


@pytest.mark.parametrize(
    ("command", "saved", "met"),
    [
        (["-m", "accelerate.test_utils.scripts.check"], ("scripts/part.py", 5), ("scripts/part.py", 7)),
        (["{place}/accelerate/test_utils/scripts/check.py"], ("scripts/part.py", 5), ("scripts/part.py", 7)),
        (["-m", "somebodys"], ("somebodys/part.py", 5), ("somebodys/helper.py", 2)),
        (["-m", "somebodys.check"], ("somebodys/part.py", 5), ("somebodys/helper.py", 2)),
        (["app.pyz"], ("app.pyz/part.py", 5), ("app.pyz/part.py", 7)),
    ],
    ids=["script of a framework by -m", "script of a framework by its path", "package by -m", "module by -m", "zip file"],
)
@pytest.mark.sample(2)
def test_its_lines_are_known(run_python, clean_env, read_events, tmp_path, installed, command, saved, met):
    """The save is at the program's line, and so is the barrier that it makes through another module of what was launched; one of a library passes."""
    env = clean_env(DDP_PROBE="1", DDP_PROBE_DIR=str(tmp_path / "runs"), RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    env["PYTHONPATH"] = "%s:%s" % (env.get("PYTHONPATH", ""), installed)
    words = [word.format(place=installed) for word in command]
    done = run_python(["-m", "ddp_probe", "run", "--", sys.executable, *words], env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    events = read_events(tmp_path / "runs" / "latest")
    sites = [event["site"] for event in events if event["event"] == "checkpoint.save" and event["phase"] == "begin"]
    assert [(site["file"].endswith(saved[0]), site["line"]) for site in sites] == [(True, saved[1])]
    told = run_python(["-m", "ddp_probe", "logs", str(tmp_path / "runs" / "latest")], env=clean_env(), cwd=tmp_path).stdout
    assert "%s:%d" % met in told or met[0].rpartition("/")[2] + ":%d" % met[1] in told
