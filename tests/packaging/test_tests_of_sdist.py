"""The tests run from the source distribution, where there is neither git nor an installed ddp_probe of that folder."""

import sys
from pathlib import Path
from typing import Any, Callable, Dict

import pytest

# A narrow part: what reads the sources, the command line, a page, and the comparison of the pages with the code.
_PART = (
    "tests/test_glossary.py",
    "tests/cli/test_schema_command.py",
    "tests/report/test_ranks_table.py",
    "tests/test_docs.py::test_no_page_is_stale",
)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="The sdist is the same for every Python: the newer stack runs its tests.")
def test_a_part_of_the_tests_passes_in_the_unpacked_sdist(
    unpacked: Path, run_python: Callable[..., Any], clean_env: Callable[..., Dict[str, str]], tmp_path: Path
) -> None:
    """pytest, started in the unpacked folder, finds the tests, their fixtures and the package there, and every test of this part passes."""
    env = {name: value for name, value in clean_env(PYTHONPATH=str(unpacked)).items() if not name.startswith("PYTEST_")}
    # With a folder of its own: a pytest that chooses one first removes what earlier runs have left, gigabytes of it.
    done = run_python(["-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", tmp_path / "tests", *_PART], env=env, cwd=unpacked, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    where = run_python("import ddp_probe; print(ddp_probe.__file__)", env=env, cwd=unpacked)
    assert Path(where.stdout.strip()) == unpacked / "ddp_probe" / "__init__.py"
