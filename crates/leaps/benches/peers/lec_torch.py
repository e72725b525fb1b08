"""Time the authors' Ising network written in PyTorch, beside `cargo bench -p leaps --bench lec`.

    python crates/leaps/benches/peers/lec_torch.py [--batch 400] [--rounds 3] [--threads 2]

Needs torch (any version) and runs on the CPU. Like the authors' code it unfolds the neighbourhoods and
holds every kernel at once, [batch, channels, taps, sites]; the loss and its gradient of a batch of 400 take
about 8 GB. Written from the formulas in `crates/leaps/src/net/lec/mod.rs`, not from their code. Rounds of both
alternate and the best of each counts, by wall clock and by CPU time: the first means little on a busy machine.
Much of PyTorch's time goes into fresh pages for those arrays; to see it without, keep freed memory and use small
batches: `MALLOC_MMAP_THRESHOLD_=100000000000 MALLOC_TRIM_THRESHOLD_=100000000000 ... --batch 50`.
"""

import argparse
import pathlib
import resource
import subprocess
import time

import torch
from torch import nn
from torch.nn.functional import conv2d, pad, silu, unfold

ROOT = pathlib.Path(__file__).resolve().parents[4]
SIDE, CHANNELS, KERNELS, BETA = 15, 20, (3, 5, 7, 9, 15), 0.4407


def mlp(sizes):
    layers = []
    for inputs, outputs in zip(sizes, sizes[1:]):
        layers += [nn.Linear(inputs, outputs), nn.SiLU()]
    return nn.Sequential(*layers[:-1])


class Layer(nn.Module):
    """K = silu(A silu(u) + b) + c + theta(t), without its centre; the output is K * x."""

    def __init__(self, width):
        super().__init__()
        taps = width * width
        self.width = width
        self.a = nn.Parameter(0.05 * torch.randn(CHANNELS, taps, CHANNELS))
        self.b = nn.Parameter(0.05 * torch.randn(CHANNELS, taps))
        self.c = nn.Parameter(0.05 * torch.randn(CHANNELS, taps))
        self.time = mlp((1, 64, 64, taps))

    def forward(self, u, x, t):
        batch, taps = len(x), self.width**2
        h = silu(u).reshape(batch, CHANNELS, SIDE * SIDE)
        z = torch.matmul(self.a.reshape(-1, CHANNELS), h).reshape(batch, CHANNELS, taps, -1)
        theta = self.time(t[:, None])[:, None, :, None]
        kernel = silu(z + self.b[:, :, None]) + self.c[:, :, None] + theta
        kernel[:, :, taps // 2] = 0
        reach = self.width // 2
        near = unfold(pad(x, (reach,) * 4, mode="circular"), self.width)[:, None]
        return (kernel * near).sum(2).reshape(batch, CHANNELS, SIDE, SIDE)


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Parameter(0.1 * torch.randn(CHANNELS, 1, KERNELS[0], KERNELS[0]))
        mask = torch.ones_like(self.first)
        mask[:, :, KERNELS[0] // 2, KERNELS[0] // 2] = 0
        self.register_buffer("mask", mask)
        self.layers = nn.ModuleList(Layer(width) for width in KERNELS[1:])
        self.out = nn.Parameter(0.1 * torch.randn(CHANNELS))

    def forward(self, x, t):
        later = (1 + t)[:, None, None, None]
        u = conv2d(later * x, self.first * self.mask, padding=KERNELS[0] // 2)
        for layer in self.layers:
            u = layer(u, x, t)
        return torch.einsum("c,bcij->bij", self.out, u) * (later * x)[:, 0]


def loss(network, free_energy, x, t):
    """mean |K + dF/dt|^2 with the paper's relu rates."""
    flux = network(x, t)
    time_ = t[:, None].clone().requires_grad_()
    rate = torch.autograd.grad(free_energy(time_).sum(), time_, create_graph=True)[0][:, 0]
    s = x[:, 0]
    ahead = s.roll(-1, 1) + s.roll(-1, 2)
    field = ahead + s.roll(1, 1) + s.roll(1, 2)
    back = torch.exp(-2 * BETA * t[:, None, None] * s * field)
    change = (flux.relu() - (-flux).relu() * back).sum((1, 2))
    return ((BETA * (s * ahead).sum((1, 2)) + change + rate) ** 2).mean()


def speed(batch, work):
    """Configurations a second, by wall clock and by CPU time."""
    start, used = time.perf_counter(), time.process_time()
    work()
    return batch / (time.perf_counter() - start), batch / (time.process_time() - used)


def ours():
    """Our best wall clock and CPU time, by name, and our peak memory."""
    command = ["cargo", "bench", "-q", "-p", "leaps", "--bench", "lec", "--", "--quick"]
    text = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    rows, peak = {}, ""
    for line in text.splitlines():
        for name in ("forward", "loss + backward"):
            if line.startswith(name):
                rows[name] = [float(word) for word in line[len(name) :].split()][1:]
        if line.startswith("VmHWM"):
            peak = line.split(maxsplit=1)[1]
    return rows, peak


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    network, free_energy = Network(), mlp((1, 200, 200, 200, 200, 1))
    x = (2 * torch.randint(0, 2, (options.batch, 1, SIDE, SIDE)) - 1).float()
    t = torch.rand(options.batch)

    def forward():
        with torch.no_grad():
            network(x, t)

    def backward():
        network.zero_grad()
        free_energy.zero_grad()
        loss(network, free_energy, x, t).backward()

    work = {"forward": forward, "loss + backward": backward}
    theirs, mine = {name: [0, 0] for name in work}, {name: [0, 0] for name in work}
    for _ in range(options.rounds):
        for name in work:
            theirs[name] = list(map(max, theirs[name], speed(options.batch, work[name])))
        rows, our_peak = ours()
        for name in work:
            mine[name] = list(map(max, mine[name], rows[name]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"PyTorch {torch.__version__}, batch {options.batch}, {options.threads} threads")
    print(f"peak memory: PyTorch {peak} kB, leaps {our_peak}")
    print(f"{'configurations/s':<18}{'PyTorch':>9}{'leaps':>9}{'ratio':>7}   per core-second:")
    for name in work:
        (a, b), (c, d) = theirs[name], mine[name]
        print(f"{name:<18}{a:>9.1f}{c:>9.0f}{c / a:>7.1f}{b:>12.1f}{d:>9.0f}{d / b:>7.1f}")


if __name__ == "__main__":
    main()
