"""Promise 3: it never calls a collective, synchronises a stream, touches RNG state, moves or holds a tensor."""

import pytest


def test_training_is_the_same_bit_for_bit(training, record_property):
    """Losses, parameters and every random number generator, of DDP and of mmengine's Runner, are bit for bit the same."""
    for rank, (plain, probed) in enumerate(zip(training["plain"].facts, training["probed"].facts)):
        for name in ("losses", "parameters", "random", "runner", "random at the end"):
            assert probed[name] == plain[name], name
        record_property("digest of rank %d" % rank, plain["parameters"])
        print("rank %d: parameters %s, runner %s, random %s" % (rank, plain["parameters"], plain["runner"][1], plain["random at the end"][0]))
    assert len(training["plain"].facts[0]["losses"]) == 5


def test_no_collective_more(training):
    """The collectives that each rank calls are counted the same, and they are not none."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        assert probed["calls"] == plain["calls"]
        assert sum(plain["calls"].values()) > 0


def test_no_collective_more_in_torchs_own_record(training):
    """torch's flight recorder lists the same collectives in the same order."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        if plain["issued"] is None:
            pytest.skip("This torch has no flight recorder.")
        assert probed["issued"] == plain["issued"]
        assert len(plain["issued"]) > 10


def test_no_tensor_is_held(training):
    """Models that were moved, wrapped or refused go away the moment the job lets go of them, without the garbage collector."""
    for plain, probed in zip(training["plain"].facts, training["probed"].facts):
        assert probed["alive"] == plain["alive"]
        assert not any(plain["alive"].values())
