"""A command in a message, directly behind a path: its secret is masked."""

import pytest

from ddp_probe.shared.masks import mask

_COMMANDS = ("mysql -p%s", "docker login -p %s", "docker login -u me -p %s")
_BEFORE = (
    "/job/run.sh:",
    "/job/run.sh,",
    "/job/run.sh;",
    "command=",
    "/job/run.log>",
    "`",
    "$(",
    "/job/a.sh|",
    "/job/run.sh: ",
    "'/job/",
    '"/opt/bin/',
)


@pytest.mark.parametrize("before", _BEFORE)
@pytest.mark.parametrize("command", _COMMANDS)
def test_a_command_directly_behind_a_path_is_masked(before: str, command: str) -> None:
    """Whatever sign stands between a path and a command, or before the line in quotation marks, the password is masked."""
    secret = "hunter2Xq9"
    after = before[0] if before[0] in "'\"" else ""
    assert secret not in mask("cannot start " + before + command % secret + after)


@pytest.mark.parametrize("text", ["/a/mysql-p1/file", "image=docker:24.0 -p 8080:80", "/data/docker:login -p", "cat: /x/password: Directory"])
def test_an_ordinary_line_is_not_changed(text: str) -> None:
    """Paths and options that look like these commands, or like a question for a password, stay as they are."""
    assert mask(text) == text
