"""What structured attention takes on a GPU: every kernel is compared with ``dense``, then measured. JSON lines.

    python experiments/speed/gpu.py CORPORA                # a folder with zinc12k/; needs CUDA and PyTorch Geometric
    python experiments/speed/gpu.py                        # without the step of ZINC
    python experiments/speed/gpu.py --device cpu --quick   # tries the script itself, without the kernel flex

1. ``equal``: output and gradients of each kernel in float32, of ``dense`` in float64; the largest difference.
2. ``time``: forward, and forward and backward, in bfloat16 on a GPU: a trainable scalar bias, a bias of each pair, the
   bias of triangle attention, and vectors of Shaw et al. at keys, or at keys and values. The ways take turns; a ratio
   is to PyTorch's attention without position (FlashAttention). Memory is that of one step.
3. ``zinc``: a training step of GPS beside PyTorch Geometric's, by ``gps.py``, as theirs / ours.

Parts that would start after ``--minutes`` are skipped, and say so. The exit status is 1 if a kernel differs or fails.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from timing import medians
from torch import Tensor
from torch.nn import functional

from structpe.attention import KERNELS, attend, probe
from structpe.terms import Factor, Lookup, Pairs, SparsePairs, Terms, Toeplitz

HEADS, WIDTH, ROWS = 8, 64, 32
SIZES = [(8, 512), (2, 2048), (1, 8192)]
CLOSE = 2e-3
CASES = ["bias", "gate", "key", "query", "product", "value", "factors", "mask", "causal", "pairs", "feature_map"]
WAYS: dict[str, dict[str, str]] = {
    "scalar bias": dict.fromkeys(("triton", "flex", "sdpa", "tiled"), "bias"),
    "bias of each pair": dict.fromkeys(("triton", "sdpa", "tiled"), "tensor"),
    "triangle attention": dict.fromkeys(("triton", "sdpa", "tiled"), "triangle"),
    "Shaw keys": dict.fromkeys(("flex", "sdpa", "tiled"), "key"),
    "Shaw keys and values": {"tiled": "key value", "tables": "key value"},
}
"""Of each case: the kernels, and the fields of the terms."""
BIASES = {"tensor": "bias", "triangle": "bias"}
"""Kinds of a field that a case asks for."""


def said(**what: Any) -> None:
    """Print a line."""
    print(json.dumps(what), flush=True)


class Drawn:
    """Random queries, keys, values and terms, the same for each kernel.

    Args:
        b, n: structures, and units of each.
        width: of a head.
        device: where.
        dtype: of numbers.
    """

    def __init__(self, b: int, n: int, width: int, device: torch.device, dtype: torch.dtype) -> None:
        self.b, self.n, self.width, self.device, self.dtype = b, n, width, device, dtype
        self.generator = torch.Generator().manual_seed(n)
        self.leaves: list[Tensor] = []
        self.q, self.k, self.v = (self.numbers(b, HEADS, n, width) for _ in range(3))
        self.out = self.numbers(b, HEADS, n, width).detach()

    def numbers(self, *shape: int) -> Tensor:
        """Rounded, so that all precisions have the same."""
        made = torch.randn(*shape, generator=self.generator).bfloat16().to(self.device, self.dtype).requires_grad_()
        self.leaves.append(made)
        return made

    def below(self, most: int, *shape: int) -> Tensor:
        """Whole numbers."""
        return torch.randint(most, shape, generator=self.generator).to(self.device)

    def lookup(self, *width: int) -> Lookup:
        """A quantity of pairs, of ROWS values."""
        index = self.below(ROWS, self.b, self.n, self.n).to(torch.uint8)
        return Lookup(self.numbers(ROWS, HEADS, *width), torch.arange(ROWS, device=self.device)[None], index)

    def terms(self, some: str) -> Terms:
        """With these fields."""
        return Terms(**{BIASES.get(name, name): getattr(self, f"of_{name}")() for name in some.split()})

    def of_tensor(self) -> tuple[Tensor, ...]:
        """A bias that is a tensor, of each structure."""
        return (self.numbers(self.b, HEADS, self.n, self.n),)

    def of_triangle(self) -> tuple[Tensor, ...]:
        """A bias that is a tensor, of all structures: in triangle attention these are the rows of one."""
        return (self.numbers(1, HEADS, self.n, self.n),)

    def of_bias(self) -> tuple[Lookup, ...]:
        """Of any pair."""
        return (self.lookup(),)

    of_gate = of_bias

    def of_key(self) -> tuple[Lookup, ...]:
        """Vectors."""
        return (self.lookup(self.width),)

    of_query = of_product = of_value = of_key

    def of_factors(self) -> tuple[Factor, ...]:
        """Of rank 2."""
        return (Factor(*(self.numbers(self.b, HEADS, self.n, 2) for _ in range(2))),)

    def of_mask(self) -> tuple[Tensor, ...]:
        """Padding; and a head that lacks some keys."""
        present = torch.arange(self.n, device=self.device)[None] < self.below(self.n, self.b, 1) + 1
        return (present[:, None, None], self.below(4, 1, HEADS, 1, self.n) > 0)

    def of_causal(self) -> bool:
        """Yes."""
        return True

    def of_pairs(self) -> tuple[Pairs, ...]:
        """A tenth of all."""
        return (Pairs(*(self.below(10, self.b, self.n, self.n) == 0).nonzero().T),)

    def of_feature_map(self) -> Callable[[Tensor], Tensor]:
        """Positive."""
        return lambda x: functional.elu(x) + 1


def case_of(name: str, kernel: str, drawn: Drawn) -> Terms:
    """Terms with a field, and with those that the kernel needs; biases by offset and of listed pairs too."""
    needs = KERNELS[kernel].needs
    terms = drawn.terms(" ".join([name, *(needs - {name})]))
    if name == "bias":
        n = drawn.n
        every = torch.arange(2 * n - 1, device=drawn.device)[None]
        terms = terms + Terms(bias=(Lookup(drawn.numbers(2 * n - 1, HEADS), every, Toeplitz(every, n, n)),))
    if name == "pairs" and "bias" in KERNELS[kernel].supports:
        (pairs,) = terms.pairs
        terms = terms + Terms(bias=(SparsePairs(drawn.numbers(4, HEADS), drawn.below(4, *pairs.key.shape), pairs),))
    return terms


def computed(by: str, name: str, of: str, n: int, device: torch.device, dtype: torch.dtype) -> list[Tensor]:
    """The output, and the gradients of all numbers: by one kernel, in the case for another."""
    drawn = Drawn(2, n, 32, device, dtype)
    terms = case_of(name, of, drawn)
    out = attend(drawn.q, drawn.k, drawn.v, terms, by)
    grads = torch.autograd.grad((out * drawn.out).sum(), drawn.leaves, allow_unused=True)
    return [x.double() for x in (out.detach(), *(g for g in grads if g is not None))]


def equal(device: torch.device, n: int, cases: Sequence[str] = CASES) -> bool:
    """Compare each kernel that runs here with ``dense``; whether all are the same."""
    whole = True
    for kernel, name in itertools.product(sorted(set(KERNELS) - {"dense"}), cases):
        chosen = KERNELS[kernel]
        if chosen.absent(device.type) or not chosen.can(frozenset({name}) | chosen.needs):
            continue
        if name != "feature_map" and "feature_map" in chosen.needs and name not in ("mask", "causal"):
            continue
        if device.type == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats(device)
        try:
            mine = computed(kernel, name, kernel, n, device, torch.float32)
        except Exception as error:
            said(part="equal", kernel=kernel, case=name, units=n, same=False, error=f"{type(error).__name__}: {error}")
            whole = False
            continue
        most = {"peak_mib": torch.cuda.max_memory_reserved(device) >> 20} if device.type == "cuda" else {}
        theirs = computed("dense", name, kernel, n, device, torch.float64)
        parts = zip(mine, theirs, strict=True)
        by = [(a - b).abs().max().item() / max(1.0, b.abs().max().item()) for a, b in parts]
        same = all(each <= CLOSE for each in by)
        said(part="equal", kernel=kernel, case=name, units=n, output=by[0], gradients=max(by[1:]), same=same, **most)
        whole = whole and same
    return whole


def measure(case: str, b: int, n: int, device: torch.device, rounds: int) -> bool:
    """Print the times of a case, and their ratios to attention without position; whether all ways ran."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    drawn = Drawn(b, n, WIDTH, device, dtype)
    plain = functional.scaled_dot_product_attention
    ways: dict[str, Callable[[], Tensor]] = {"none": lambda: plain(drawn.q, drawn.k, drawn.v)}
    terms: dict[str, Terms] = {}
    for kernel, some in WAYS[case].items():
        if not KERNELS[kernel].absent(device.type):
            made = terms.setdefault(some, drawn.terms(some))
            ways[kernel] = partial(attend, drawn.q, drawn.k, drawn.v, made, kernel)
    if case == "scalar bias":
        (bias,) = terms["bias"].bias
        assert isinstance(bias, Lookup)
        places = bias.dense_index()
        ways["embedding"] = lambda: plain(
            drawn.q, drawn.k, drawn.v, functional.embedding(places, bias.table).permute(0, 3, 1, 2)
        )

    def trained(way: Callable[[], Tensor]) -> None:
        torch.autograd.grad((way() * drawn.out).sum(), drawn.leaves, allow_unused=True)

    whole = True
    for name, way in list(ways.items()):
        try:
            trained(way)
        except Exception as error:
            said(part="failed", case=case, units=n, way=name, error=f"{type(error).__name__}: {error}")
            whole = False
            del ways[name]
    with torch.no_grad():
        forward = medians(ways, rounds, device, warm=2)  # the first two compile and warm up
    training = medians({name: partial(trained, way) for name, way in ways.items()}, rounds, device, warm=2)
    for name in ways:
        took = {"forward_ms": forward[name] * 1e3, "training_ms": training[name] * 1e3}
        ratios = {
            "forward_ratio": forward[name] / forward["none"],
            "training_ratio": training[name] / training["none"],
        }
        rounded = {key: round(value, 3) for key, value in (took | ratios).items()}
        if device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(device)
            before = torch.cuda.memory_allocated(device)
            trained(ways[name])
            rounded["training_mib"] = (torch.cuda.max_memory_allocated(device) - before) >> 20
        said(part="time", case=case, structures=b, units=n, dtype=str(dtype), way=name, **rounded)
    return whole


def zinc(corpora: Path, device: torch.device, rounds: int, sizes: list[int]) -> bool:
    """Print how much faster a training step is than PyTorch Geometric's, by ``gps.py``; it is an error if it fails."""
    sys.path.insert(0, str(Path(__file__).parent))
    import gps

    for case in itertools.islice(gps.cases(corpora, sizes), len(sizes)):
        took = gps.measured(case, rounds, gps.Way(device, False))
        ratios = {f"PyG / {name}": round(took["peer"] / ms, 3) for name, ms in took.items() if name.startswith("own")}
        said(part="zinc", batch=case.size, ms={name: round(ms, 3) for name, ms in took.items()}, **ratios)
    return True


def asked(given: argparse.Namespace, part: str) -> bool:
    """Whether a part is to be run."""
    return given.only is None or part in given.only


def parts(given: argparse.Namespace) -> Iterator[tuple[str, Callable[[], bool]]]:
    """What is measured, by name."""
    rounds, sizes = (2, [(1, 64)]) if given.quick else (given.rounds, SIZES)
    for (b, n), case in itertools.product(sizes, WAYS) if asked(given, "time") else ():
        yield f"{case}, {n} units", partial(measure, case, b, n, given.device, rounds)
    if given.corpora is not None and asked(given, "zinc"):
        batches = [32] if given.quick else [32, 128, 256]
        yield "zinc", partial(zinc, given.corpora, given.device, rounds, batches)


def main() -> int:
    """Compare, then measure; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", type=Path, nargs="?")
    parser.add_argument("--device", type=torch.device, default=torch.device("cuda"))
    parser.add_argument("--quick", action="store_true", help="small sizes and two rounds, to try the script")
    parser.add_argument("--rounds", type=int, default=20, help="in which the ways take turns (default: 20)")
    parser.add_argument("--only", nargs="+", choices=("probe", "equal", "time", "zinc"), help="default: all")
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES, help="which are compared (default: all)")
    parser.add_argument("--minutes", type=float, default=13.0, help="after these no other part is started")
    given = parser.parse_args()
    if given.device.type == "cuda" and not torch.cuda.is_available():
        sys.exit(
            "this measures on a GPU, and PyTorch finds none; run it on a machine with CUDA, or try the script itself "
            "with --device cpu --quick"
        )
    start, whole = time.monotonic(), True
    where = torch.cuda.get_device_name(given.device) if given.device.type == "cuda" else "CPU"
    said(part="machine", device=where, torch=torch.__version__, python=sys.version.split()[0])
    dtypes = (torch.float32, torch.bfloat16) if given.device.type == "cuda" and asked(given, "probe") else ()
    for dtype, kernel in itertools.product(dtypes, ("flex", "triton")):
        found = probe(kernel, given.device, dtype, WIDTH)
        said(part="probe", kernel=kernel, dtype=str(dtype), reason=found.reason, deterministic=found.deterministic)
        whole = whole and found.reason is None
    for n in ((20,) if given.quick else (20, 150)) if asked(given, "equal") else ():
        whole = equal(given.device, n, given.cases) and whole
    for name, part in parts(given):
        if time.monotonic() - start > 60 * given.minutes:
            said(part="skipped", name=name, reason=f"{given.minutes:g} minutes are over")
            continue
        try:
            whole = part() and whole
        except Exception as error:
            said(part="failed", name=name, error=f"{type(error).__name__}: {error}")
            whole = False
    said(part="end", minutes=round((time.monotonic() - start) / 60, 2), same=whole)
    return 0 if whole else 1


if __name__ == "__main__":
    sys.exit(main())
