"""Doctor looks at the Python that a launch would start, which may be another one than its own."""

import os
import shlex

import shebang

_CHECK = (
    "from ddp_probe.doctor.checks import activator, launcher_recorded\n"
    "from ddp_probe.doctor.host import Host, Request\n"
    "host = Host(Request())\n"
    "for check in (activator, launcher_recorded): print(*check.check(host)[:3], sep='|')"
)


def test_an_activator_of_another_python(make_venv, tmp_path):
    """A torchrun of an environment without the activator fails its check, though it is installed here; after the remedy's command it passes."""
    here, there = make_venv(), make_venv()
    here.install()
    (tmp_path / "torchrun").write_text(shebang.of(there.python) + "print('launches')\n")
    (tmp_path / "torchrun").chmod(0o755)
    path = {"PATH": "%s:%s" % (tmp_path, os.environ["PATH"])}
    own, launcher = here.run(_CHECK, **path).stdout.splitlines()
    assert own.startswith("ok|Active for %s" % here.python)
    status, saw, remedy = launcher.split("|")
    assert (status, saw.startswith("torchrun starts %s, where DDP_PROBE=1 records nothing: " % there.python)) == ("fail", True)
    install = "%s -m ddp_probe install" % shlex.quote(str(there.python))
    assert remedy.endswith("; " + install)
    assert there.run(shlex.split(install)[1:]).returncode == 0
    assert here.run(_CHECK, **path).stdout.splitlines()[1].startswith("ok|torchrun starts %s, and is recorded." % there.python)
