"""What to try next if a run leaves a question open: one sentence each, so that "undecided" is never the last word."""

EARLY = "Look at what the launch printed first: the program may have ended before it imported torch."
NO_GROUP = (
    "If the processes use torch.distributed.rpc or no torch at all, there is nothing to follow: the probe looks at process groups. "
    "If they should train together, look whether each of them calls init_process_group."
)
OTHER_RUN = "python -m ddp_probe runs lists all runs."
MISSING = "Look at what those ranks printed first. If their host writes to a folder of its own, name both: python -m ddp_probe report DIR DIR."
LAUNCHER = "Look at what the launching program printed, and at its own code after the ranks had ended."
HUNG = "If it hung there, look at the ranks that were in another place: it waited for those."
WAITING = "Look at the ranks that are missing: these may wait for them. If it still runs, py-spy dump --pid %d shows the stack."
TRACED = "Run the job again with DDP_PROBE=1 and read that run: python -m ddp_probe report."
FAILURE = "Start at %s; the whole traceback is in %s:%d, and python -m ddp_probe logs%s shows what was done before."
FOLLOW = "Read it again once it has ended; python -m ddp_probe report --follow waits for that."
SIGNAL = "Find out who sent %s: the launcher after another rank's failure, a scheduler's limit, a person."
TRACEBACK = "Read its traceback at %s:%d."
LOGGED = "Look at what it printed last. Do not catch the exception, or call sys.exit(1) in the except that catches it: then its traceback is here."
GONE = (
    "Look at what the program that started it printed: a pool (joblib, Ray, concurrent.futures) keeps the exception of a worker and ends its workers."
    " If it printed none, ask the kernel: dmesg -T | grep -i -E 'killed process|out of memory'."
    " If you start it with torchrun, its exit code or signal is here."
)
UNTOLD = "End the program by its last line or by sys.exit(code), not by raise SystemExit; or start it with torchrun, which tells it."
SIZE = "Set WORLD_SIZE, or start the job with torchrun, which does."
HOLES = "Copy the file again from its host. If lines are missing there too, check that disk (df -h), and run the job again."
UNREADABLE = "Make it readable for this user, or read it as the user who ran the job."
NONE_ASKED = "Ask for at least one process: a count of cards is 0 if torch sees none."
CAUGHT = (
    "Look at what the ranks that differ printed, and at the except clauses of the job: one has caught what failed. Let it end with that exception."
)
LEDGER = "Copy the file of the rank that ends in .ledger beside its log. If there is none, look whether the disk was full, and run the job again."
