"""A load test of ``structpe serve``: requests of several clients at once, against the same items one by one.

    python experiments/speed/serving.py                          # 1,000 requests of 8 clients, some two minutes
    python experiments/speed/serving.py --requests 200 --clients 4 --runs generate

A model that counts carbons of chains and one that writes texts for AMR, both of width 32, are trained for some steps.
Each is served by a process of its own, on one thread. Each request has one item. The answers are compared with those of
a loop over the same items, ``predict([item])`` or ``generate([item])``, in this process, on one thread: a text must be
equal, a number to 1e-5. Prints Markdown: wrong and lost answers, the latency of requests in milliseconds, and items a
second, of the server and of the loop.
"""

from __future__ import annotations

import argparse
import csv
import http.client
import json
import math
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import torch

import structpe
from structpe.nn import GraphModelConfig
from structpe.tasks import BenchmarkConfig, PredictionConfig, PredictionTraining, PredictionValidation
from structpe.tasks.config import make
from structpe.tasks.graph_to_text.config import GraphToTextConfig

SAMPLE = Path(__file__).parents[2] / "datasets" / "amr_sample"
Answer = dict[str, Any]


def carbons(folder: Path) -> tuple[Path, list[Answer]]:
    """A run that predicts, and items for it."""
    with open(folder / "chains.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", "carbons"])
        writer.writerows(["C" * (1 + i % 8) + "FIN"[i % 3], 1 + i % 8] for i in range(120))
    training = PredictionTraining(steps=50, batch_size=24, validation=PredictionValidation(every=25))
    options = {"file": "chains.csv", "targets": ["carbons"]}
    config = PredictionConfig(
        data=BenchmarkConfig("smiles", str(folder), options),
        model=GraphModelConfig(width=32, layers=2, heads=2, message_passing="gine", readout="sum"),
        position="rwse",
        training=training,
        out=str(folder / "carbons"),
    )
    structpe.train(config)
    return folder / "carbons", [{"smiles": "C" * (1 + i % 20) + "FIN"[i % 3]} for i in range(60)]


def texts(folder: Path) -> tuple[Path, list[Answer]]:
    """A run that writes texts, and items for it."""
    plain = {
        "data": {"train": str(SAMPLE / "train.txt"), "dev": str(SAMPLE / "dev.txt"), "reader": "amr"},
        "prepare": {"vocabulary": 300},
        "model": {"width": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "feedforward": 64},
        "position": "t5",
        "training": {"steps": 60, "batch_size": 16, "optimiser": {"learning_rate": 0.01, "warmup": 10}},
        "search": {"beam": 1, "longest": 20},
        "out": str(folder / "texts"),
    }
    structpe.train(make(GraphToTextConfig, plain))
    graphs = (SAMPLE / "test.txt").read_text(encoding="utf-8").strip().split("\n\n")
    return folder / "texts", [{"penman": graph} for graph in graphs]


@contextmanager
def serving(run: Path) -> Iterator[str]:
    """The address of a server in another process; it ends by SIGTERM, without an error."""
    words = [sys.executable, "-m", "structpe", "serve", str(run), "--port", "0", "--device", "cpu"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.terminate()
        assert process.wait(60) == 0


def asked(address: str, verb: str, items: Sequence[Answer], clients: int) -> tuple[list[Answer | None], list[float]]:
    """The answer to each item, None if it is lost, and the seconds of each; a client keeps its connection."""

    def client(number: int) -> list[tuple[int, Answer | None, float]]:
        connection, found = http.client.HTTPConnection(urlsplit(address).netloc, timeout=60), []
        for place in range(number, len(items), clients):
            begun, result = time.perf_counter(), None
            body = json.dumps({"items": [items[place]]})
            connection.request("POST", f"/{verb}", body, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            if answer.status == 200:
                result = json.load(answer)["results"][0]
            else:
                print(answer.status, answer.read().decode(), file=sys.stderr)
            found.append((place, result, time.perf_counter() - begun))
        return found

    with ThreadPoolExecutor(clients) as threads:
        found = sorted((each for part in threads.map(client, range(clients)) for each in part), key=lambda row: row[0])
    return [result for _, result, _ in found], [seconds for _, _, seconds in found]


def same(one: Answer, other: Answer) -> bool:
    """Whether two results are equal up to rounding."""
    if "text" in one:
        return bool(one["text"] == other["text"])
    return all(math.isclose(one["prediction"][k], other["prediction"][k], abs_tol=1e-5) for k in one["prediction"])


def row(name: str, made: tuple[Path, list[Answer]], requests: int, clients: int) -> str:
    """A row of the table."""
    from structpe.serve.served import served

    run, items = made[0], [made[1][i % len(made[1])] for i in range(requests)]
    alone = served(run, "cpu", 512, None)

    def work(item: Answer) -> Answer:
        return alone.work([alone.item(item, 1)])[0]

    work(items[0])
    begun = time.perf_counter()
    wanted = [work(item) for item in items]
    loop = time.perf_counter() - begun
    with serving(run) as address:
        asked(address, alone.verb, items[:clients], clients)
        begun = time.perf_counter()
        found, seconds = asked(address, alone.verb, items, clients)
        taken = time.perf_counter() - begun
    lost = sum(result is None for result in found)
    wrong = sum(r is not None and not same(r, w) for r, w in zip(found, wanted, strict=True))
    cuts = quantiles(seconds, n=100)
    return (
        f"| {name} | {len(items)} | {wrong} | {lost} | {1e3 * cuts[49]:.0f} | {1e3 * cuts[98]:.0f} | "
        f"{len(items) / taken:.0f} | {len(items) / loop:.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--runs", nargs="+", choices=("predict", "generate"), default=["predict", "generate"])
    given = parser.parse_args()
    torch.set_num_threads(1)
    print("| run | requests | wrong | lost | p50 ms | p99 ms | server, items/s | loop, items/s |")
    print("|---|---|---|---|---|---|---|---|")
    with TemporaryDirectory() as folder:
        for name, make_run in (("predict", carbons), ("generate", texts)):
            if name in given.runs:
                print(row(name, make_run(Path(folder)), given.requests, given.clients), flush=True)


if __name__ == "__main__":
    main()
