"""Which statement of the job made a rank leave the sequence that all share, from the job's source and the ways in the ledgers.

The first of these jobs is the one with which docs/hangs.md begins.
"""

import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, Optional, Sequence

import pytest

from ddp_probe.judging import ledgers, left_sequence
from ddp_probe.judging.judge import Diagnosis, judge
from ddp_probe.reading.load_run import from_lines
from ddp_probe.standing import splits
from ddp_probe.standing.sequence import SequenceParting

FINITE = """\
def train_step(model, optimizer, batch):
    loss = model(batch)
    if not torch.isfinite(loss):
        return None
    loss.backward()
    optimizer.step()


for batch in batches:
    train_step(model, optimizer, batch)
dist.all_reduce(total)
"""
CAUGHT = """\
for batch in batches:
    try:
        loss = model(batch)
    except RuntimeError:
        continue
    loss.backward()
    optimizer.step()
dist.barrier()
"""
BEST = """\
def save_best(value, best):
    if value < best:
        dist.barrier()


for epoch in range(9):
    for batch in batches:
        model(batch).backward()
    save_best(value, best)
"""
ORDER = """\
def reduce_mean(value):
    dist.all_reduce(value)


for step in range(9):
    model(batch).backward()
    if first:
        mean = reduce_mean(loss)
        hits = reduce_mean(accuracy)
    else:
        hits = reduce_mean(accuracy)
        mean = reduce_mean(loss)
"""
SKIPS = """\
for batch in batches:
    if is_empty(batch):
        continue
    model(batch).backward()
dist.barrier()
"""
SOLVER = """\
def log_every(loader):
    for batch in loader:
        yield batch


def evaluate(evaluator):
    for batch in log_every(val_loader):
        model.module(batch)
    if evaluator is not None:
        dist.all_gather_object(results, evaluator)


def fit():
    for epoch in range(9):
        for batch in log_every(train_loader):
            model(batch).backward()
        dist.all_reduce(total)
        if is_main_process():
            torch.save(state, path)
        if not is_main_process():
            continue
        evaluate(evaluator)


fit()
"""
HELPER = """\
def reduce_mean(value):
    dist.all_reduce(value)


for step in range(9):
    model(batch).backward()
    reduce_mean(loss)
    if time.time() - last > 60:
        reduce_mean(norm)
"""


def _job(
    tmp_path: Path,
    source: str,
    ledger: str,
    *,
    ended: bool = False,
    events: Sequence[Dict[str, Any]] = (),
) -> Diagnosis:
    """Return what is said of a run with this source, whose lines stand in the ledger as numbers."""
    file = tmp_path / "train.py"
    file.write_text(source, encoding="utf-8")
    os.utime(file, (500.0, 500.0))  # Before the run.
    events = list(events)
    for rank in (0, 1) if ended else ():
        events += [{"event": "process.start", "rank": rank, "world_size": 2, "role": "rank"}, {"event": "process.end", "rank": rank, "exit_code": 0}]
    return judge(from_lines("\n".join([*map(json.dumps, events), *_placed(ledger, file).splitlines()])))


def _placed(ledger: str, file: Path) -> str:
    """Return the lines of a ledger with the file at each @, in quotes: the folder may have a space in its name."""
    return re.sub(r"@(\S+)", lambda place: "'%s:%s'" % (file, place[1]), ledger)


def _step(ranks: str) -> str:
    return "ledger %s forward at @2:train_step via @10:<module>\nledger %s backward at @5:train_step via @10:<module>\n" % (ranks, ranks)


def test_a_return_before_backward_is_named_and_not_the_call_in_which_the_job_hangs(tmp_path: Path) -> None:
    """The `if` under which one rank returned is named, many steps before the ranks wait for each other."""
    forward = "ledger 1 forward at @2:train_step via @10:<module>\n"
    ledger = _step("0-1") * 4 + _step("0") + forward + _step("0-1") * 3
    ledger += "ledger 0 forward at @2:train_step via @10:<module>\nledger 0 backward at @5:train_step via @10:<module> open\n"
    diagnosis = _job(tmp_path, FINITE, ledger + "ledger 1 all_reduce 1 float32 at @11:<module> via @11:<module> open\n")
    (finding,) = diagnosis.findings
    assert (finding.id, finding.ranks) == ("DDP602", [1])
    assert "'if not torch.isfinite(loss)' at %s:3 in train_step" % (tmp_path / "train.py") in finding.verdict
    assert "number 5" in finding.verdict
    assert "torch.isfinite(loss)" in finding.remedy


def test_an_exception_that_was_caught_is_where_a_rank_left(tmp_path: Path) -> None:
    """The forward that raised, its number and the `except` that took it are named."""
    both = "ledger %s forward at @3:<module> via @3:<module>\nledger %s backward at @6:<module> via @6:<module>\n"
    ledger = both % ("0-1", "0-1") + both % ("0", "0") + "ledger 1 forward at @3:<module> via @3:<module> raised\n" + both % ("0-1", "0-1")
    ledger += "ledger 0 forward at @3:<module> via @3:<module>\nledger 0 backward at @6:<module> via @6:<module> open\n"
    diagnosis = _job(tmp_path, CAUGHT, ledger + "ledger 1 barrier at @8:<module> via @8:<module> open\n")
    (finding,) = diagnosis.findings
    assert (finding.id, finding.ranks) == ("DDP602", [1])
    assert "DDP's forward number 2" in finding.verdict
    assert "except RuntimeError" in finding.verdict


def test_the_condition_on_an_own_metric_is_named(tmp_path: Path) -> None:
    """Of two ranks the one is named that skips a barrier for the first time, with the condition around it."""
    step = "ledger %s forward at @8:<module> via @8:<module>\nledger %s backward at @8:<module> via @8:<module>\n"
    epoch = step % ("0-1", "0-1") * 2 + "ledger 0-1 barrier at @3:save_best via @9:<module>\n"
    ledger = epoch * 3 + step % ("0-1", "0-1") * 2 + "ledger 0 barrier at @3:save_best via @9:<module> open\n"
    ledger += "ledger 1 forward at @8:<module> via @8:<module>\nledger 1 backward at @8:<module> via @8:<module> open\n"
    (finding,) = _job(tmp_path, BEST, ledger).findings
    assert (finding.id, finding.ranks) == ("DDP602", [1])
    assert "'if value < best'" in finding.verdict


@pytest.mark.parametrize("guilty", [0, 1])
def test_two_orders_of_one_helper_are_told_of_a_run_that_ended_well(tmp_path: Path, guilty: int) -> None:
    """A helper's one line, called from the two arms of an `if` in another order, mixes numbers; the rank that changed its order is named."""
    call = "ledger %s all_reduce 1 float32 at @2:reduce_mean via @%d:<module>\n"
    step = "ledger 0-1 backward at @6:<module> via @6:<module>\n"
    alike = step + call % ("0-1", 8) + call % ("0-1", 9)
    others = "%d" % (1 - guilty)
    mixed = step + call % (others, 8) + call % (str(guilty), 11) + call % (others, 9) + call % (str(guilty), 12)
    diagnosis = _job(tmp_path, ORDER, alike * 3 + mixed * 2, ended=True)
    (finding,) = diagnosis.findings
    assert (finding.id, finding.ranks) == ("DDP661", [guilty])
    assert "%s:8" % (tmp_path / "train.py") in finding.verdict
    assert "%s:11" % (tmp_path / "train.py") in finding.verdict


def test_arms_that_make_the_same_call_in_the_same_order_are_clear(tmp_path: Path) -> None:
    """The two arms of an `if` may both call a helper once."""
    call = "ledger %s all_reduce 1 float32 at @2:reduce_mean via @%d:<module>\n"
    same = ORDER.replace("        hits = reduce_mean(accuracy)\n        mean = reduce_mean(loss)\n", "        mean = reduce_mean(loss)\n")
    step = "ledger 0-1 backward at @6:<module> via @6:<module>\n" + call % ("0", 8) + call % ("1", 11)
    diagnosis = _job(tmp_path, same, step * 4, ended=True)
    assert [finding.id for finding in diagnosis.findings] == []


def test_a_shift_that_stays_is_told_with_the_clock_that_decides(tmp_path: Path) -> None:
    """A rank that reduces once more by its own clock is ahead from there on, at one line of a helper, without any hang."""
    call = "ledger %s all_reduce 1 float32 at @2:reduce_mean via @%d:<module>\n"
    step = "ledger %s backward at @6:<module> via @6:<module>\n" + call.replace("%d", "7")
    ledger = step % ("0-1", "0-1") * 3 + call % ("1", 9) + step % ("0-1", "0-1") * 9 + call % ("0", 9)
    (finding,) = _job(tmp_path, HELPER, ledger, ended=True).findings
    assert (finding.id, finding.ranks) == ("DDP661", [1])
    assert "time.time() - last > 60" in finding.verdict
    assert "clock" in finding.remedy


TOKENS = """\
for document in documents:
    with ExitStack() as stack:
        if not counter.full:
            stack.enter_context(model.no_sync())
        loss = model(document)
        loss.backward()
    if counter.full:
        optimizer.step()
dist.barrier()
"""


def _micro_step(ranks: str, held: str = "") -> str:
    passes = "ledger %s forward at @5:<module> via @5:<module>%s\nledger %s backward at @6:<module> via @6:<module>\n"
    return passes % (ranks, held, ranks)


def test_the_condition_of_no_sync_is_named(tmp_path: Path) -> None:
    """Ranks that hold their gradients back in different steps parted at the `if` around no_sync(), steps before they wait."""
    alike = (_micro_step("0-1", " held") + _micro_step("0-1")) * 3
    ledger = alike + _micro_step("0", " held") + _micro_step("1") + _micro_step("0") + _micro_step("1", " held")
    ledger += _micro_step("0", " held") + "ledger 1 forward at @5:<module> via @5:<module>\n"
    ledger += "ledger 1 backward at @6:<module> via @6:<module> open\nledger 0 barrier at @9:<module> via @9:<module> open\n"
    (finding,) = _job(tmp_path, TOKENS, ledger).findings
    assert "'if not counter.full' at %s:3" % (tmp_path / "train.py") in finding.verdict
    assert "forward number 7 under no_sync() at" in finding.verdict
    assert "in the same steps" in finding.remedy
    assert "line 3" in finding.remedy


def test_steps_that_hold_back_alike_part_nobody(tmp_path: Path) -> None:
    """Ranks that accumulate gradients in the same steps and end well are clear."""
    ledger = (_micro_step("0-1", " held") + _micro_step("0-1")) * 3 + "ledger 0-1 barrier at @9:<module> via @9:<module>\n"
    assert _job(tmp_path, TOKENS, ledger, ended=True).verdict == "clear"


STOPS = """\
class GoodEnough(Hook):
    def before_train(self, runner):
        runner.train_loop.stop_training = False

    def after_train_epoch(self, runner):
        if self.mean < self.threshold:
            runner.train_loop.stop_training = True


runner.train()
dist.barrier()
"""
_EPOCH = "ledger %s dataloader at @10:<module> via @10:<module>\nledger %s backward at @10:<module> via @10:<module>\n"


def _stopped(then: str) -> str:
    epoch = _EPOCH % ("0-1", "0-1") * 3 + "ledger 0-1 dataloader at @10:<module> via @10:<module> raised\n"
    last = "ledger 1 dataloader at @10:<module> via @10:<module>\nledger 1 backward at @10:<module> via @10:<module> open\n"
    return epoch + then + last + "ledger 0 barrier at @11:<module> via @11:<module> open\n"


def test_the_condition_that_stops_a_loop_of_a_library_is_named(tmp_path: Path) -> None:
    """If one rank's Runner has ended and another's goes on, the `if` under which a hook sets stop_training decided, with its change."""
    (finding,) = _job(tmp_path, STOPS, _stopped("")).findings
    assert finding.ranks == [0]
    assert "Rank 0 left the others at 'if self.mean < self.threshold' at %s:6 in after_train_epoch" % (tmp_path / "train.py") in finding.verdict
    assert "all_gather_object(decisions, bool(self.mean < self.threshold))" in finding.remedy


def test_a_loop_that_nobody_stops_is_not_explained(tmp_path: Path) -> None:
    """A job that never asks for the end of the loop, or whose rank had no further batch, is told of without that `if`."""
    source = STOPS.replace("= True", "= False")
    (finding,) = _job(tmp_path, source, _stopped("")).findings
    assert "after the end of the DataLoader" in finding.verdict
    assert "self.threshold" not in finding.verdict
    short = "ledger 1 backward at @10:<module> via @10:<module>\n"
    ledger = _EPOCH % ("0-1", "0-1") * 3 + _EPOCH % ("1", "1") + _stopped(short)
    verdicts = [finding.verdict for finding in _job(tmp_path, STOPS, ledger).findings]
    assert verdicts
    assert not any("self.threshold" in verdict for verdict in verdicts)


LONG = """\
for step in range(steps):
    loss = model(inputs).sum()
    if not usable(loss):
        continue
    loss.backward()
dist.barrier()
"""


@pytest.mark.parametrize("guilty", [0, 1])
def test_a_backward_that_was_skipped_long_ago_is_known_of_two_ranks(tmp_path: Path, guilty: int) -> None:
    """Hundreds of steps after one of two ranks skipped a backward, the rank that has made one fewer than its forwards is named."""
    passes = "ledger %s forward at @2:<module> via @2:<module>\nledger %s backward at @5:<module> via @5:<module>\n"
    skipped = passes % (1 - guilty, 1 - guilty) + "ledger %d forward at @2:<module> via @2:<module>\n" % guilty
    ledger = passes % ("0-1", "0-1") * 3 + skipped + passes % ("0-1", "0-1") * 700
    ledger += "ledger %d backward at @5:<module> via @5:<module> open\n" % (1 - guilty)
    ledger += "ledger %d barrier at @6:<module> via @6:<module> open\n" % guilty
    (finding,) = _job(tmp_path, LONG, ledger).findings
    assert finding.ranks == [guilty]
    assert "Rank %d has made 1 backward pass fewer than rank %d for as many forwards" % (guilty, 1 - guilty) in finding.verdict
    assert "All the backward passes that they hold are made at %s:5." % (tmp_path / "train.py") in finding.verdict


UNREAD = """\
def validate(epoch):
    error = measure(epoch)
    dist.all_reduce(error)


for epoch in range(4):
    model(batch).backward()
    pending = executor.submit(validate, epoch)
    wait([pending])
dist.barrier()
"""


def _lost_in_a_thread(tmp_path: Path, source: str, missing: str) -> Optional[SequenceParting]:
    """Return where ranks parted of which some make no call in the third epoch's thread, and go on."""
    file = tmp_path / "train.py"
    file.write_text(source, encoding="utf-8")
    os.utime(file, (500.0, 500.0))
    passes = "ledger %s forward at @7:<module> via @7:<module>\nledger %s backward at @7:<module> via @7:<module>%s\n"
    reduced = "ledger %s all_reduce 1 float32 at @3:validate via @3:validate thread%s\n"
    makers = ",".join(rank for rank in "012" if rank not in missing)
    ledger = (passes % ("0-2", "0-2", "") + reduced % ("0-2", "")) * 2 + passes % ("0-2", "0-2", "")
    ledger += reduced % (makers, " raised") + passes % (missing or "0", missing or "0", " open")
    run = from_lines(_placed(ledger, file))
    found = splits.of_sequence(ledgers.standings_of(run))
    return found.sequence if found is not None else None


def test_a_call_that_a_thread_lost_is_told(tmp_path: Path) -> None:
    """The rank whose thread made no call is named, and the line that waits for the thread without reading what it raised."""
    left = _lost_in_a_thread(tmp_path, UNREAD, "2")
    assert left is not None
    assert (left.ranks, left.others) == ((2,), (0, 1))
    told = left_sequence.told(left)
    assert "in a side thread, whose exceptions stay unread at 'wait([pending])' at %s:9" % (tmp_path / "train.py") in told
    assert "ranks 0-1 go on to all_reduce number 3" in told
    assert "call result() on its future" in left_sequence.change(left)[0]  # type: ignore[operator]


def test_a_thread_whose_result_is_read_is_told_without_that_line(tmp_path: Path) -> None:
    """If the job reads what its thread raised, the rank is named, and no line is blamed; a call that all made parts nobody."""
    left = _lost_in_a_thread(tmp_path, UNREAD.replace("wait([pending])", "pending.result()"), "2")
    assert left is not None
    assert (left.ranks, left.decision) == ((2,), None)
    assert _lost_in_a_thread(tmp_path, UNREAD, "") is None


def test_an_evaluation_of_rank_0_alone_is_named_and_not_the_save_before_it(tmp_path: Path) -> None:
    """The `if` on the rank is named, and the lines by which both sides came to one helper; what rank 0 saves by itself is passed over."""
    batch = "ledger %s dataloader at @2:log_every via @25:<module> @15:fit\n"
    step = batch % "0-1" + "ledger 0-1 forward at @16:fit via @25:<module>\nledger 0-1 backward at @16:fit via @25:<module>\n"
    validates = "ledger 0 dataloader at @2:log_every via @25:<module> @22:fit @7:evaluate%s\n"
    ledger = step * 3 + batch.replace("\n", " raised\n") % "0-1" + "ledger 0-1 all_reduce 1 float32 at @17:fit via @25:<module>\n"
    ledger += "ledger 0 save at @19:fit via @25:<module>\n" + validates % "" + validates % " raised"
    ledger += "ledger 0 all_gather_object at @10:evaluate via @25:<module> @22:fit open\n"
    ledger += batch % "1" + "ledger 1 forward at @16:fit via @25:<module> open\n"
    (finding,) = _job(tmp_path, SOLVER, ledger).findings
    job = str(tmp_path / "train.py")
    assert (finding.id, finding.ranks) == ("DDP629", [0])
    assert "Rank 0 left the others at 'if not is_main_process()' at %s:20 in fit" % job in finding.verdict
    assert "it went on to batch number 5 at %s:2, reached from %s:22, and" % (job, job) in finding.verdict
    assert "batch number 5 at %s:2, reached from %s:15." % (job, job) in finding.verdict
    assert "torch.save" not in finding.verdict


def test_a_batch_that_was_skipped_is_no_smaller_number_of_batches(tmp_path: Path) -> None:
    """The change for a rank whose loader ends too early, as it had skipped a batch, is about the `if` that skipped it, and not about the loader."""
    batch = "ledger %s dataloader at @1:<module> via @1:<module>%s\n"
    rest = "ledger %s forward at @4:<module> via @4:<module>\nledger %s backward at @4:<module> via @4:<module>%s\n"
    step = batch % ("0-1", "") + rest % ("0-1", "0-1", "")
    ledger = step * 3 + batch % ("1", "") + step * 6 + batch % ("0", "") + rest % ("0", "0", " open")
    ledger += batch % ("1", " raised") + "ledger 1 barrier at @5:<module> via @5:<module> open\n"
    (finding,) = _job(tmp_path, SKIPS, ledger).findings
    assert finding.ranks == [1]
    assert "'if is_empty(batch)' at %s:2" % (tmp_path / "train.py") in finding.verdict
    assert "in line 2" in finding.remedy
    assert "DistributedSampler" not in finding.remedy


MASTER = """\
def estimate_loss():
    for batch in batches:
        losses.append(model(batch))


def main():
    while True:
        if step % 4 == 0 and master_process:
            estimate_loss()
        if losses and losses[-1] < goal:
            break
        model(batch).backward()
    dist.destroy_process_group()


main()
"""


@pytest.mark.parametrize(
    ("last", "decided"),
    [("", "'if losses and losses[-1] < goal' at %s:10"), (" raised", "'if step % 4 == 0 and master_process' at %s:8")],
    ids=["goes on", "raises"],
)
@pytest.mark.parametrize("earlier", [1, 2])
def test_forwards_that_one_rank_makes_alone_each_time_do_not_part_it(earlier: int, last: str, decided: str, tmp_path: Path) -> None:
    """If a rank has evaluated alone before and gone on with the others, it has left behind its last evaluation, if that has come to an end."""
    forward = "ledger 0 forward at @3:estimate_loss via @16:<module> @9:main"
    alone = (forward + "\n") * 3
    train = "ledger 0-2 forward at @12:main via @16:<module>\nledger 0-2 backward at @12:main via @16:<module>\n" * 4
    ledger = (alone + train) * earlier + (forward + "\n") * 2 + forward + last + "\n"
    ledger += "ledger 0 destroy_process_group at @13:main via @16:<module>\n"
    ledger += "ledger 1-2 forward at @12:main via @16:<module>\nledger 1-2 backward at @12:main via @16:<module> open\n"
    (finding,) = _job(tmp_path, MASTER, ledger).findings
    assert finding.ranks == [0]
    assert decided.replace("%s", str(tmp_path / "train.py")) in finding.verdict


TABLE = """\
def stops(run):
    for epoch in range(3):
        run.train()
        loss = run.evaluate()
        if loss < goal:
            break


WAYS = {"stops": stops}
WAYS[sys.argv[1]](Run(model))
dist.barrier()
"""


def test_a_function_of_a_table_is_called_once(tmp_path: Path) -> None:
    """A rank that breaks out of a loop comes to what is behind the call of a table's function, and not into that function again."""
    train = "ledger %s forward at @3:stops via @10:<module>\nledger %s backward at @3:stops via @10:<module>%s\n"
    epoch = train % ("0-1", "0-1", "") + "ledger 0-1 all_reduce 1 float32 at @4:stops via @10:<module>\n"
    ledger = epoch * 2 + "ledger 1 barrier at @11:<module> via @11:<module> open\n" + train % ("0", "0", " open")
    (finding,) = _job(tmp_path, TABLE, ledger).findings
    assert finding.ranks == [1]
    assert "Rank 1 left the others at 'if loss < goal' at %s:5 in stops" % (tmp_path / "train.py") in finding.verdict


LEARNED = """\
class StopWhenLearned(TrainerCallback):
    def on_step_end(self, args, state, control):
        if self.last_loss < self.enough:
            control.should_training_stop = True


trainer.train()
"""
_TRAINS = "ledger %s dataloader at @7:<module> via @7:<module>\n"
_LEARNS = _TRAINS.replace("dataloader", "backward") + _TRAINS.replace("dataloader", "optimizer")


@pytest.mark.parametrize(("guilty", "others"), [(1, "0,2"), (0, "1"), (1, "0")], ids=str)
def test_the_condition_that_stops_a_trainer_is_named(guilty: int, others: str, tmp_path: Path) -> None:
    """All calls of a Trainer have one line of the job; unlike ones part ranks of which some took a batch."""
    gathers = "ledger %s all_gather 1 %s at @7:<module> via @7:<module>%s\n"
    ranks = "%s,%d" % (others, guilty)
    step = _TRAINS % ranks + gathers % (ranks, "int64", "") + _LEARNS % (ranks, ranks)
    ledger = step * 5 + gathers % (guilty, "float32", " open")
    ledger += _TRAINS % others + gathers % (others, "int64", " open")
    (finding,) = _job(tmp_path, LEARNED, ledger).findings
    assert finding.ranks == [guilty]
    told = "Rank %d left the others at 'if self.last_loss < self.enough' at %s:3 in on_step_end"
    assert told % (guilty, tmp_path / "train.py") in finding.verdict


def test_unlike_calls_that_nothing_precedes_have_no_other_place(tmp_path: Path) -> None:
    """Ranks that came to the same call alike, and pass it other tensors, did not part before it."""
    step = _TRAINS % "0-2" + _LEARNS % ("0-2", "0-2")
    unlike = "ledger %s all_gather 1 %s at @7:<module> via @7:<module> open\n"
    ledger = step * 3 + _TRAINS % "0-2" + unlike % ("1", "float32") + unlike % ("0,2", "int64")
    (finding,) = _job(tmp_path, LEARNED, ledger).findings
    assert (finding.id, finding.ranks) == ("DDP627", [1])
    assert "with the same data type as the others" in finding.remedy
    assert "self.enough" not in finding.verdict


GATHERS = """\
for batch in loader:
    scores = model(batch)
    if accelerator.is_main_process:
        scores = accelerator.gather(scores)
for batch in train:
    model(batch).backward()
"""


STAGE = """\
def middle():
    for _ in range(3):
        dist.recv(inputs, 0)
        if not torch.isfinite(inputs).all():
            continue
        dist.send(outputs, 2)


for step in range(5):
    middle()
"""


def test_a_stage_that_leaves_out_a_send_is_told_by_its_own_past(tmp_path: Path) -> None:
    """A rank with a part of its own left at the `if` between its last call, this one and the usual one."""
    at = "at @%d:middle via @10:<module>"
    first = "ledger 0 send 4 float32 to 1 at @15:first\nledger 1 recv 4 float32 from 0 %s\n" % (at % 3)
    turn = first + "ledger 1 send 4 float32 to 2 %s\nledger 2 recv 4 float32 from 1 at @20:last\n" % (at % 6)
    last = first + "ledger 1 recv 4 float32 from 0 %s open\n" % (at % 3)
    last += "ledger 2 recv 4 float32 from 1 at @20:last open\n"
    last += "ledger 0 recv 4 float32 from 1 at @16:first open\n"
    (finding,) = _job(tmp_path, STAGE, turn * 6 + last).findings
    assert (finding.id, finding.ranks) == ("DDP635", [1])
    place = "%s:4 in middle" % (tmp_path / "train.py")
    assert "What decided: 'if not torch.isfinite(inputs).all()' at %s." % place in finding.verdict
    assert finding.evidence[0].site is not None
    assert finding.evidence[0].site.line == 4


WITHOUT_FILES = """\
def fit(files):
    if not files:
        return
    model = DDP(network)


def main():
    init_process_group()
    fit(files)
    destroy_process_group()


main()
"""


def test_a_rank_that_never_came_to_the_wrap_is_told_by_the_line_where_another_lost_it(tmp_path: Path) -> None:
    """A rank that returns before the wrap makes no call: the traceback of another one has the other way."""
    file = str(tmp_path / "train.py")
    names = [(13, "<module>"), (9, "main"), (4, "fit")]
    failure = {
        "type": "RuntimeError",
        "message": "Connection closed by peer [127.0.0.1]:1",
        "frames": [{"file": file, "line": line, "function": function} for line, function in names],
    }
    events: List[Dict[str, Any]] = []
    for rank in (0, 1):
        start = {"event": "process.start", "rank": rank, "world_size": 2, "role": "rank"}
        group = {"event": "dist.init_process_group", "rank": rank, "span": 1, "ts": "2026-01-01T00:00:01Z"}
        events.append({**start, "ts": "2026-01-01T00:00:00Z"})
        events += [{**group, "phase": "begin"}, {**group, "phase": "end"}]
    destroy = {"event": "dist.destroy_process_group", "rank": 1, "span": 2, "ts": "2026-01-01T00:00:02Z"}
    destroy["site"] = {"file": file, "line": 10, "function": "main"}
    events += [{**destroy, "phase": "begin"}, {**destroy, "phase": "end"}]
    events.append({"event": "process.end", "rank": 1, "exit_code": 0, "ts": "2026-01-01T00:00:03Z"})
    lost = {"event": "process.end", "rank": 0, "failure": failure, "uncaught": True}
    events.append({**lost, "ts": "2026-01-01T00:00:04Z"})
    ledger = "ledger 0-1 init_process_group at @8:main via @13:<module>\n"
    ledger += "ledger 1 destroy_process_group at @10:main via @13:<module>\n"
    (finding,) = _job(tmp_path, WITHOUT_FILES, ledger, events=events).findings
    assert (finding.id, finding.ranks) == ("DDP617", [1])
    assert "What decided: 'if not files' at %s:2 in fit." % file in finding.verdict


def test_the_end_of_a_loader_that_the_other_did_not_ask_again_parts_nobody(tmp_path: Path) -> None:
    """A loader that is asked ahead ends on the rank that went on; who waits under the `if` has left."""
    asks = "ledger %s dataloader at @1:<module> via @1:<module>%s\n"
    scores = "ledger %s forward at @2:<module> via @2:<module>\n"
    ledger = asks % ("0-1", "") * 2 + scores % "0-1"
    ledger += "ledger 0 all_gather 4 float32 at @4:<module> via @4:<module> open\n"
    ledger += asks % ("1", " raised") + scores % "1" + "ledger 1 dataloader at @5:<module> via @5:<module>\n"
    ledger += "ledger 1 forward at @6:<module> via @6:<module>\n"
    ledger += "ledger 1 backward at @6:<module> via @6:<module> open\n"
    (finding,) = _job(tmp_path, GATHERS, ledger).findings
    assert finding.ranks == [0]
    assert "under the 'if' in line 3" in finding.verdict


SAVES = """\
class KeepBest(Callback):
    def on_train_batch_end(self, trainer):
        if trainer.is_global_zero:
            trainer.save_checkpoint("best.ckpt")


trainer.fit()
"""


def test_a_call_whose_timeout_the_library_caught_is_not_where_a_rank_left(tmp_path: Path) -> None:
    """A rank that waited for a call that the other never came to, and whose library went on, has not left."""
    fits = "ledger %s %s at @7:<module> via @7:<module>%s\n"
    asks = fits % ("0-1", "broadcast 1 int64 root 0", "")
    step = asks + fits % ("0-1", "dataloader", "") + fits % ("0-1", "backward", "")
    ledger = step * 3 + "ledger 0 save at @4:KeepBest.on_train_batch_end via @7:<module>\n"
    ledger += "ledger 0 barrier at @4:KeepBest.on_train_batch_end via @7:<module> open\n"
    ledger += fits % ("1", "broadcast 1 int64 root 0", " raised")
    ledger += fits % ("1", "dataloader", "") + fits % ("1", "backward", " open")
    (finding,) = _job(tmp_path, SAVES, ledger).findings
    assert finding.ranks == [0]
    assert "%s:4" % (tmp_path / "train.py") in finding.verdict


SHARDS = """\
for batch in loader:
    model(batch).backward()
dist.all_reduce(total)
"""


def test_a_loader_whose_rank_went_on_behind_its_loop_has_not_failed(tmp_path: Path) -> None:
    """A rank that gloo aborts behind its loop has had fewer batches, although its log has no end."""
    child = {"child_rank": 1, "child_local_rank": 1, "exit_code": -6, "signal": "SIGABRT"}
    failure = {"type": "RuntimeError", "message": "Connection reset by peer", "frames": []}
    end = {"event": "process.end", "failure": failure, "exit_code": 1, "uncaught": True}
    events: List[Dict[str, Any]] = [{"event": "launcher.start", "launcher": "torchrun"}]
    events += [{"event": "launcher.child", **child}, {"event": "process.start", "rank": 1, "world_size": 3}]
    for rank in (0, 2):
        events += [{"event": "process.start", "rank": rank, "world_size": 3}, {**end, "rank": rank}]
    asks = "ledger %s dataloader at @1:<module> via @1:<module>%s\n"
    passes = "ledger %s backward at @2:<module> via @2:<module>%s\n"
    ledger = (asks % ("0-2", "") + passes % ("0-2", "")) * 3
    ledger += asks % ("1", " raised") + "ledger 1 all_reduce 1 float32 at @3:<module> via @3:<module> open\n"
    ledger += asks % ("0,2", "") + passes % ("0,2", " open")
    (finding,) = _job(tmp_path, SHARDS, ledger, events=events).findings
    assert (finding.ranks, finding.cause) == ([1], "uneven_batches")
    assert "'for batch in loader' at %s:1" % (tmp_path / "train.py") in finding.verdict


MEMBERS_ALONE = """\
def adapter_group(rank):
    if rank not in MEMBERS:
        return None
    return new_group(MEMBERS)


def main():
    init_process_group()
    group = adapter_group(rank)
    model = DDP(network)


main()
"""


def test_a_rank_in_the_wrap_left_those_that_wait_in_new_group(tmp_path: Path) -> None:
    """No ledger has the wrap: the log says where a rank gave up in it, and the source what led there."""
    file = str(tmp_path / "train.py")
    barrier = "Timed out initializing process group in store based barrier on rank: 0"
    sent = "Timed out waiting 20000ms for send operation to complete"
    begun, over = "2026-01-01T00:01:00Z", "2026-01-01T00:01:20Z"
    events: List[Dict[str, Any]] = []
    for rank, line, message in ((0, 4, barrier), (1, 4, barrier), (2, 10, sent)):
        start = {"event": "process.start", "rank": rank, "world_size": 3, "role": "rank"}
        group = {"event": "dist.init_process_group", "rank": rank, "span": 1, "ts": begun}
        events += [{**start, "ts": begun}, {**group, "phase": "begin"}, {**group, "phase": "end"}]
        site = {"file": file, "line": line, "function": "main"}
        failure = {"type": "RuntimeError", "message": message, "frames": [site]}
        if rank == 2:
            wrap = {"event": "ddp.init", "rank": rank, "span": 2, "site": site}
            events.append({**wrap, "phase": "begin", "ts": begun})
            events.append({**wrap, "phase": "error", "failure": failure, "ts": over})
        end = {"event": "process.end", "rank": rank, "failure": failure, "uncaught": True}
        events.append({**end, "ts": over})
    ledger = "ledger 0-2 init_process_group at @8:main via @13:<module>\n"
    ledger += "ledger 0-1 new_group at @4:adapter_group via @13:<module> @9:main raised\n"
    (finding,) = _job(tmp_path, MEMBERS_ALONE, ledger, events=events).findings
    assert finding.ranks == [2]
    decided = "Rank 2 left the others at 'if rank not in MEMBERS' at %s:2" % file
    assert finding.verdict.startswith(decided)
    assert "it went on to the wrap of a model at %s:10" % file in finding.verdict
    assert "collectives behind" not in finding.verdict
    assert "Let all ranks call new_group" in str(finding.remedy)


AVERAGED = """\
def on_fit_end(model, loader):
    if dist.get_rank() == 0:
        update_bn(loader, model)


def accuracy(network, loader):
    for batch in loader:
        count(network(batch))
    dist.all_reduce(counts)


def fit(callbacks):
    for epoch in range(epochs):
        for batch in loader:
            model(batch).backward()
    for callback in callbacks:
        callback.on_fit_end(model, loader)


fit(callbacks)
accuracy(network, loader)
"""


def test_of_two_ranks_the_one_that_a_condition_on_its_rank_leads_astray_is_named(tmp_path: Path) -> None:
    """Rank 0 of two measures batch norms through DDP, and rank 1 has passed the loop over its loader."""
    step = "ledger 0-1 dataloader at @14:fit via @20:<module>\n"
    step += "ledger 0-1 forward at @15:fit via @20:<module>\n"
    step += "ledger 0-1 backward at @15:fit via @20:<module>\n"
    ledger = step * 3 + "ledger 0-1 dataloader at @14:fit via @20:<module> raised\n"
    ledger += "ledger 0 dataloader at @3:on_fit_end via @20:<module> @17:fit\n"
    ledger += "ledger 0 forward at @3:on_fit_end via @20:<module> @17:fit open\n"
    ledger += "ledger 1 dataloader at @7:accuracy via @21:<module>\n" * 2
    ledger += "ledger 1 dataloader at @7:accuracy via @21:<module> raised\n"
    ledger += "ledger 1 all_reduce 2 float32 at @9:accuracy via @21:<module> open\n"
    (finding,) = _job(tmp_path, AVERAGED, ledger).findings
    assert finding.ranks == [0]
    decided = "the most likely first: 'if dist.get_rank() == 0' at %s:2" % (tmp_path / "train.py")
    assert decided in finding.verdict
