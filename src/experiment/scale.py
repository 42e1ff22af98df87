"""How long the whole matrix takes over N GPUs, from the seconds that each shape took on one.

A job is a shape, and no two share a GPU, so the jobs are laid on N machines, the longest first
(Graham's list scheduling, within a third of the best). Each pays what the scheduler takes to start
it; what is not a job of a GPU (the build, merging, figures, the paper) is done once and by one.

    python -m experiment.scale --seconds results/cpu/parts/seconds/*.txt --start 5 --serial 60
"""

import argparse
import heapq
from pathlib import Path

from experiment import InputError, command

ENOUGH = 1.05  # within this factor of what no number of GPUs can beat, more do not help


def makespan(jobs, gpus):
    """The seconds until all jobs are done on so many GPUs, the longest started first."""
    free = [0.0] * gpus
    for seconds in sorted(jobs, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + seconds)
    return max(free)


def total(seconds, gpus, start, serial):
    """The seconds of a whole run: what is done once, and the jobs with what it takes to start each."""
    return serial + makespan([job + start for job in seconds], gpus)


def saturation(seconds, start, serial):
    """The fewest GPUs that come within ENOUGH of one a job."""
    best = total(seconds, len(seconds), start, serial)
    return next(
        gpus
        for gpus in range(1, len(seconds) + 1)
        if total(seconds, gpus, start, serial) <= ENOUGH * best
    )


def read(paths):
    """The seconds in each file; raises InputError for one that holds no positive number."""
    found = []
    for path in paths:
        text = Path(path).read_text().strip()
        try:
            found.append(float(text))
        except ValueError:
            raise InputError(f"{path}: {text!r}; expected seconds") from None
    return found


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.scale", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "--seconds", nargs="+", required=True, help="a file a job, with its seconds"
    )
    parser.add_argument("--start", type=float, default=0, help="seconds to start a job")
    parser.add_argument("--serial", type=float, default=0, help="seconds that no GPU is needed for")
    options = parser.parse_args(arguments)
    seconds = read(options.seconds)
    one = total(seconds, 1, options.start, options.serial)
    most = saturation(seconds, options.start, options.serial)
    print("GPUs  seconds  times as fast")
    gpus = 1
    while gpus < 2 * most:
        time = total(seconds, gpus, options.start, options.serial)
        print(f"{gpus:4d}  {time:7.0f}  {one / time:.1f}")
        gpus *= 2
    print(f"{most} GPUs are enough for {len(seconds)} jobs; the longest takes {max(seconds):g} s")


if __name__ == "__main__":
    command(main)
