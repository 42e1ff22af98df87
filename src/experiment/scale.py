"""How long a run takes over N GPUs, from the seconds that each of its jobs took.

A job verifies a shape or times it, and no two share a GPU. A shape is verified before it is timed, so
its jobs follow one another and the shapes are laid on N machines, the longest first (Graham's list
scheduling, within a third of the best). Each job pays what the scheduler takes to start it.

    python -m experiment.scale results/cpu --start 5
"""

import argparse
import heapq
from pathlib import Path

from experiment import InputError, command

ENOUGH = 1.05  # within this factor of what no number of GPUs can beat, more do not help


def read(results):
    """The seconds of the jobs of each shape, from the results folder of a run."""
    folder = Path(results) / "parts/seconds"
    shapes = {}
    for path in sorted(folder.rglob("*.txt")):
        shapes.setdefault(path.stem, []).append(seconds(path))
    if not shapes:
        raise InputError(f"{folder}: no job's seconds; expected the results folder of a run")
    return shapes


def seconds(path):
    """The number in a file."""
    text = path.read_text().strip()
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{path}: {text!r}; expected seconds") from None


def makespan(shapes, gpus):
    """The seconds until all shapes are done on so many GPUs, the longest started first."""
    free = [0.0] * gpus
    for shape in sorted(shapes, reverse=True):
        heapq.heappush(free, heapq.heappop(free) + shape)
    return max(free)


def enough(shapes):
    """The fewest GPUs that come within ENOUGH of the longest shape, which no number can beat."""
    limit = ENOUGH * max(shapes)
    fits = (gpus for gpus in range(1, len(shapes)) if makespan(shapes, gpus) <= limit)
    return next(fits, len(shapes))


def main(arguments=None):
    parser = argparse.ArgumentParser(
        prog="python -m experiment.scale", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("results", help="the results folder of a device")
    parser.add_argument("--start", type=float, default=0, help="seconds to start a job")
    options = parser.parse_args(arguments)
    shapes = [sum(jobs) + options.start * len(jobs) for jobs in read(options.results).values()]
    most = enough(shapes)
    one = makespan(shapes, 1)
    print("GPUs  seconds  times as fast")
    for gpus in sorted({*(2**power for power in range(most.bit_length())), most}):
        time = makespan(shapes, gpus)
        print(f"{gpus:4d}  {time:7.0f}  {one / time:.1f}")
    print(f"{most} GPUs are enough; the longest shape takes {max(shapes):g} s")


if __name__ == "__main__":
    command(main)
