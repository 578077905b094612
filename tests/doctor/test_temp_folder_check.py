"""The check temp-folder."""

from types import SimpleNamespace

from ddp_probe.doctor.checks import temp_folder


def test_it_fails_if_a_path_is_too_long():
    """A folder of 75 characters passes; one of 76 fails, with how long a socket's path would be."""
    answers = [temp_folder.check(SimpleNamespace(environ={"TMPDIR": "/" + "t" * (length - 1)})) for length in (75, 76)]
    assert [answer.status for answer in answers] == ["ok", "fail"]
    assert "108 characters; 107 are possible" in answers[1].saw
    assert "export TMPDIR=/tmp" in answers[1].remedy
