"""How long the jobs of a run take over N GPUs, from the seconds that each took.

A job is a shape's verification or its timing, and no two share a GPU; so the jobs are laid on N
machines, the longest first (Graham's list scheduling, within a third of the best), and each pays
what the scheduler takes to start it. That a shape is verified before it is timed is left out:
verifying is short.

    python -m experiment.scale results/cpu --start 9
"""

import argparse
import heapq
from pathlib import Path

from experiment import InputError, command

ENOUGH = 1.05  # within this factor of what no number of GPUs can beat, more do not help


def read(results):
    """The seconds of each job of a run, from its results folder."""
    folder = Path(results) / "parts/seconds"
    paths = sorted(folder.rglob("*.txt"))
    if not paths:
        raise InputError(f"{folder}: no job's seconds; expected the results folder of a run")
    return [seconds(path) for path in paths]


def seconds(path):
    """The number in a file."""
    text = path.read_text().strip()
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{path}: {text!r}; expected seconds") from None


def makespan(jobs, gpus):
    """The seconds until all jobs are done on so many GPUs, the longest started first."""
    free = [0.0] * gpus
    for job in sorted(jobs, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + job)
    return max(free)


def enough(jobs):
    """The fewest GPUs that come within ENOUGH of the longest job, which no number can beat."""
    fits = (gpus for gpus in range(1, len(jobs)) if makespan(jobs, gpus) <= ENOUGH * max(jobs))
    return next(fits, len(jobs))


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.scale", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("results", help="the results folder of a device")
    parser.add_argument("--start", type=float, default=0, help="seconds to start a job")
    options = parser.parse_args(arguments)
    jobs = [job + options.start for job in read(options.results)]
    most = enough(jobs)
    one = makespan(jobs, 1)
    print("GPUs  seconds  times as fast")
    for gpus in sorted({*(2**power for power in range(most.bit_length())), most}):
        time = makespan(jobs, gpus)
        print(f"{gpus:4d}  {time:7.0f}  {one / time:.1f}")
    print(f"{most} GPUs are enough for {len(jobs)} jobs; the longest takes {max(jobs):g} s")


if __name__ == "__main__":
    command(main)
