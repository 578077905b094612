"""Promise 4: it never initialises a device: it reads what is imported and initialised, and otherwise the environment and /dev."""

import json


def test_no_device_is_initialised(training):
    """After a whole job torch.cuda and torch.xpu are uninitialised, and no device file is open."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        assert probed["cuda"] == plain["cuda"] == [False, False]
        assert probed["devices"] == plain["devices"] == []


def test_no_vendor_module_is_imported(training):
    """Vendors' modules that lie on the path are noticed in every rank, and not imported."""
    assert training["probed"].imported == ""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        assert probed["vendors"] == plain["vendors"]
        assert "torch_gcu" not in probed["vendors"]
    for path in training["probed"].runs.rglob("rank*.jsonl"):
        start = json.loads(path.read_text().split("\n", 1)[0])
        assert {"name": "gcu", "importable": True}.items() <= next(card for card in start["accelerators"] if card["name"] == "gcu").items()
