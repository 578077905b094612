"""A dependency that is missing in the job's interpreter costs the job nothing but one line."""

import pytest


@pytest.mark.parametrize("name", ["wrapt", "structlog", "msgspec"])
def test_a_missing_dependency(run_python, armed, runs, tmp_path, repo, name):
    """The program runs as ever, with one line on stderr that names what is missing, also in what it starts."""
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / (name + "-99.0.dist-info")).mkdir()  # as what has been installed there; a file of that name alone is the job's own
    (broken / (name + ".py")).write_text('raise ImportError("No module named %s here", name="%s")\n' % (name, name))
    (tmp_path / "train.py").write_text(
        "import subprocess, sys, torch\n"
        "torch.save({'a': 1}, 'x.pt')\n"
        "print(torch.load('x.pt'))\n"
        "if len(sys.argv) == 1:\n"
        "    subprocess.run([sys.executable, 'train.py', 'again'], check=True)\n"
    )
    path = "%s:%s:%s" % (repo / "sitecustomize_templates", broken, repo)
    env = armed(runs.root, PYTHONPATH=path, RANK="0", WORLD_SIZE="1", DDP_PROBE_STRICT=None)
    done = run_python(["-u", "train.py"], env=env, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "{'a': 1}\n" * 2
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("ddp_probe: ")
    assert name in lines[0]
