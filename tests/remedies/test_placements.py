"""What the remedies do on cards: each check of programs/placements.py, and one of them in a process in which mmengine imports torch."""

import pytest
from remedy_runs import checks


@pytest.mark.sample(8)
@pytest.mark.parametrize("check", checks("placements"))
def test_placement(check, checked):
    """A placement on a card is changed if its remedy is on and the placement would fail, and is left alone otherwise."""
    checked("placements", check, "auto", cards=True, RANK="0", WORLD_SIZE="1", LOCAL_RANK="2")


def test_mmengine_device_is_the_first_to_import_torch(rank_program):
    """get_device() is corrected even if its module is the one that imports torch."""
    rank_program(
        "import mmengine.device.utils as utils, torch; torch.save({}, 'a.pth')\n"
        "assert type.__call__(type, utils.get_device).__name__ == 'Wrapper', type.__call__(type, utils.get_device)",
        "mmengine-device",
    )
