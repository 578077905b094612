"""Work that is shared among processes has the results, and the order, of the work of one."""

import os
import signal
import time
from typing import Any, Dict

import pytest

from ddp_probe.reading import on_cores

PARENT = os.getpid()


def _there(number: int) -> bytes:
    assert os.getpid() != PARENT
    return b"%d " % number * 50000  # More than a pipe holds.


def _arrived(data: bytes) -> int:
    assert data.endswith(b" ")
    return int(data.split()[0])


@pytest.mark.parametrize("children", [0, 1, 3])
def test_results_have_the_order_of_the_parts(children: int) -> None:
    """Whoever does a part, its result is at its place, and no child is left behind."""
    made = on_cores.each(40, children, lambda number: number, _there, _arrived)
    assert made == list(range(40))
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_child_takes_parts_while_its_parent_is_busy() -> None:
    """The parent's first part lasts until the child has done the last one: the child does all others."""
    done, says = os.pipe()

    def here(number: int) -> int:
        if number != 9:
            os.read(done, 1)
        return -number

    def there(number: int) -> bytes:
        if number == 9:
            os.write(says, b"x")
        return b"%d" % number

    made = on_cores.each(10, 1, here, there, int)
    os.close(done)
    os.close(says)
    assert sum(number < 0 for number in made) <= 1
    assert list(map(abs, made)) == list(range(10))


def test_what_a_child_does_not_send_is_done_by_its_parent() -> None:
    """A child that is killed, and one that fails, lose nothing."""
    for fault in (lambda: os.kill(os.getpid(), signal.SIGKILL), lambda: 1 / 0):

        def there(number: int, fault: Any = fault) -> bytes:
            fault()
            return b""

        seen: Dict[int, int] = {}

        def here(number: int, seen: Dict[int, int] = seen) -> int:
            time.sleep(0.01)  # The child has its turn.
            seen[number] = os.getpid()
            return number

        assert on_cores.each(6, 2, here, there, int) == list(range(6))
        assert sorted(seen) == list(range(6))


def test_more_parts_than_a_pipe_has_numbers_for() -> None:
    """Parts whose numbers find no place are done at the end."""
    many = on_cores.MOST + 5
    assert on_cores.each(many, 1, lambda number: number, lambda number: b"%d" % number, int) == list(range(many))
