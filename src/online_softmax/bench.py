"""The post's benchmark, on any device: python -m online_softmax.bench --rows 256 --cols 8192

It times like the post does: wall clock, a new output each call, a warm cache, one mean. For
numbers to rely on, run the experiment (make reproduce).
"""

import argparse
import time
from collections.abc import Callable

import torch

from online_softmax import naive_forward, online_forward


def synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def mean_ms(f: Callable, x: torch.Tensor, warmup: int, iters: int) -> float:
    """Milliseconds of one f(x), the mean of `iters` calls after `warmup`."""
    for _ in range(warmup):
        f(x)
    synchronize(x.device.type)
    start = time.perf_counter()
    for _ in range(iters):
        f(x)
    synchronize(x.device.type)
    return (time.perf_counter() - start) * 1e3 / iters


def at_least(minimum: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        value = int(text)
        if value < minimum:
            raise argparse.ArgumentTypeError(f"{value}; accepted: {minimum} or more")
        return value

    return parse


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m online_softmax.bench", description=__doc__)
    parser.add_argument("--rows", type=at_least(1), default=4096)
    parser.add_argument("--cols", type=at_least(1), default=1024)
    parser.add_argument("--iters", type=at_least(1), default=200)
    parser.add_argument("--warmup", type=at_least(0), default=20)
    parser.add_argument("--scale", type=float, default=10.0, help="standard deviation of x")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="default: a GPU if there is one")
    args = parser.parse_args()

    device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(args.rows, args.cols, device=device) * args.scale

    online, naive, reference = online_forward(x), naive_forward(x), torch.softmax(x, dim=-1)
    print(f"shape=({args.rows}, {args.cols})")
    for name, a, b in [
        ("online, torch", online, reference),
        ("naive,  torch", naive, reference),
        ("online, naive", online, naive),
    ]:
        print(f"max_abs_diff({name}) = {(a - b).abs().max().item():.8g}")

    torch_ms = mean_ms(lambda t: torch.softmax(t, dim=-1), x, args.warmup, args.iters)
    online_ms = mean_ms(online_forward, x, args.warmup, args.iters)
    naive_ms = mean_ms(naive_forward, x, args.warmup, args.iters)
    print("Performance:")
    print(f"  torch.softmax:       {torch_ms:.4f} ms")
    print(f"  online two-pass:     {online_ms:.4f} ms")
    print(f"  naive three-pass:    {naive_ms:.4f} ms")
    print(f"  speedup online/naive {naive_ms / online_ms:.3f}x")
    print(f"  speedup online/torch {torch_ms / online_ms:.3f}x")


if __name__ == "__main__":
    main()
