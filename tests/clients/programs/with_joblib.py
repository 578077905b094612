"""Two workers of joblib are the ranks of a process group."""

import os

from joblib import Parallel, delayed
from toy_training import train

if __name__ == "__main__":
    print(Parallel(n_jobs=2)(delayed(train)(rank, os.environ["PORT"]) for rank in range(2)), flush=True)
