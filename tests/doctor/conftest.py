"""What tests of doctor's static checks share."""

from typing import Any, Callable, Dict

import pytest
from planted import Planter


@pytest.fixture(scope="module")
def planter(clean_env: Callable[..., Dict[str, str]]) -> Any:
    """A host without a fault, and others like it with one."""
    return Planter(clean_env())
