"""The verifier against math-verify on the same rows, its speed, and what hostile answers cost.

    python benchmarks/verifier.py cases      both error rates on the rows in tests/cases
    python benchmarks/verifier.py speed      10,000 ordinary distinct comparisons, interleaved blocks
    python benchmarks/verifier.py mixed      the same with one hostile answer in a hundred
    python benchmarks/verifier.py hostile    5,000 hostile answers

math-verify runs as its README shows (parse, parse, verify, defaults), warm, in processes of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from measure import Figure, report

from porism.types import Gold, Verdict
from porism.verify.extract import extract
from porism.verify.pool import Verifier

CASES = Path(__file__).resolve().parents[1] / "tests" / "cases"
WORKERS = 2


class Item(NamedTuple):
    gold: str
    answer: str
    equal: bool


# math-verify


def rival(gold: str, response: str) -> bool:
    """math-verify's yes or no on a whole response."""
    from math_verify import parse, verify

    return bool(verify(parse(f"${gold}$"), parse(response)))


def rival_item(item: Item) -> bool:
    """math-verify's yes or no on an answer in a box."""
    return rival(item.gold, f"The answer is $\\boxed{{{item.answer}}}$.")


def _rival_loop(link: Connection) -> None:
    import logging

    logging.disable(logging.CRITICAL)
    while True:
        gold, response = link.recv()
        try:
            link.send(rival(gold, response))
        except Exception as fault:  # noqa: BLE001  (a crash is what is counted)
            link.send(type(fault).__name__)


class Rival:
    """math-verify in a child process that is killed when it does not come back."""

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self.link, theirs = multiprocessing.Pipe()
        self.process = multiprocessing.get_context("spawn").Process(
            target=_rival_loop, args=(theirs,), daemon=True
        )
        self.process.start()
        theirs.close()
        self.ask("1", "\\boxed{1}", seconds=60)

    def ask(self, gold: str, response: str, seconds: float = 15) -> bool | str:
        """True, False, the name of an exception, or hang."""
        self.link.send((gold, response))
        try:
            if self.link.poll(seconds):
                return bool(found) if isinstance(found := self.link.recv(), bool) else str(found)
            found = "hang"
        except (EOFError, ConnectionError):
            found = "crash"
        self.process.kill()
        self.process.join()
        self._start()
        return found


# rows


def ordinary(count: int, seed: int = 7) -> list[Item]:
    """Distinct everyday comparisons, about half of them equal."""
    draw = random.Random(seed)
    found: dict[tuple[str, str], Item] = {}
    while len(found) < count:
        item = draw.choice(_KINDS)(draw, draw.random() < 0.5)
        found[item.gold, item.answer] = item
    return list(found.values())


def _integer(draw: random.Random, equal: bool) -> Item:
    value = draw.randint(-99_999, 999_999)
    other = value if equal else value + draw.choice((-10, -1, 1, 7))
    return Item(
        str(value),
        draw.choice((f"{other:,}", f"{other}.0", f"x = {other}", f"{other}\\text{{ ways}}")),
        equal,
    )


def _fraction(draw: random.Random, equal: bool) -> Item:
    top, bottom, by = draw.randint(1, 400), draw.randint(2, 300), draw.randint(2, 9)
    other = top * by if equal else top * by + 1
    return Item(
        f"\\frac{{{top}}}{{{bottom}}}",
        draw.choice((f"{other}/{bottom * by}", f"\\dfrac{{{other}}}{{{bottom * by}}}")),
        equal,
    )


def _radical(draw: random.Random, equal: bool) -> Item:
    a, b, c = draw.randint(2, 30), draw.choice((2, 3, 5, 6, 7, 10, 11)), draw.randint(1, 50)
    return Item(f"{c}+{a}\\sqrt{{{b}}}", f"\\sqrt{{{a * a * b}}}+{c if equal else c + 1}", equal)


def _polynomial(draw: random.Random, equal: bool) -> Item:
    a, b, x = draw.randint(1, 60), draw.randint(1, 60), draw.choice("xyzt")
    return Item(
        f"({x}+{a})({x}-{b})", f"{x}^2+{a - b}{x}-{a * b if equal else a * b + 1}".replace("+-", "-"), equal
    )


def _tuple(draw: random.Random, equal: bool) -> Item:
    a, b, c = (draw.randint(-50, 50) for _ in range(3))
    return Item(f"({a}, {b}, {c})", f"\\left({a}, {b}, {c if equal else c + 1}\\right)", equal)


def _set(draw: random.Random, equal: bool) -> Item:
    values = draw.sample(range(-60, 60), 4)
    other = values[::-1] if equal else [*values[:3], 99]
    return Item(f"\\{{{', '.join(map(str, values))}\\}}", f"\\{{{', '.join(map(str, other))}\\}}", equal)


def _interval(draw: random.Random, equal: bool) -> Item:
    low = draw.randint(-90, 90)
    high = low + draw.randint(1, 90)
    return Item(f"[{low}, {high})", f"[{low}, {high}" + (")" if equal else "]"), equal)


def _line(draw: random.Random, equal: bool) -> Item:
    a, b, c, by = draw.randint(1, 30), draw.randint(1, 30), draw.randint(1, 90), draw.randint(2, 5)
    return Item(f"{a}x+{b}y={c}", f"{a * by}x+{b * by}y={c * by if equal else c * by + 1}", equal)


def _constant(draw: random.Random, equal: bool) -> Item:
    a, b = draw.randint(1, 90), draw.randint(2, 60)
    return Item(f"\\frac{{{a}\\pi}}{{{b}}}+e^{{2}}", f"e^2+{a if equal else a + 1}\\pi/{b}", equal)


def _sine(draw: random.Random, equal: bool) -> Item:
    a, b = draw.randint(2, 90), draw.randint(2, 90)
    return Item(f"{a}\\sin(2x)+{b}", f"{b}+{2 * a if equal else 2 * a + 1}\\sin x\\cos x", equal)


_KINDS = (
    _integer,
    _integer,
    _fraction,
    _fraction,
    _radical,
    _polynomial,
    _tuple,
    _set,
    _interval,
    _line,
    _constant,
    _sine,
)


def hostile(count: int, seed: int = 11) -> list[Item]:
    """Distinct answers made to hang, crash or exhaust a checker; none is the gold."""
    draw = random.Random(seed)
    found: dict[str, Item] = {}
    while len(found) < count:
        n, m = draw.randint(3, 99), draw.randint(10, 10**6)
        answer = draw.choice(_HOSTILE)(n, m)
        found[answer] = Item(str(m), answer, False)
    return list(found.values())


_HOSTILE = (
    lambda n, m: f"{n}^{{{n}^{{{n}^{{{m}}}}}}}",
    lambda n, m: f"(10^{{{m}}})!+{n}",
    lambda n, m: f"\\int_0^{{{m % 97 + 1}}} \\sin(e^{{x^{{{n}}}}})\\cos(x^{{{n + 1}}}) \\ln(x+{m})\\,dx",
    lambda n, m: f"\\sum_{{k=1}}^{{{m}{m}}} \\frac{{\\sin(k^{{{n}}})}}{{k}}",
    lambda n, m: f"\\int \\frac{{\\sin(x^{{{n}}})+{m}}}{{x^{{{n + 2}}}+\\cos x}}\\,dx",
    lambda n, m: "(" * (10 * n) + str(m + 1) + ")" * (10 * n),
    lambda n, m: "\\sqrt{" * n + f"{m}+\\sqrt{{2}}" + "}" * n,
    lambda n, m: "+".join(f"\\sin({k}x^{{{m}}})" for k in range(n)),
    lambda n, m: f"(x+{m})^{{{m}}}+\\sqrt{{{n}x}}",
    lambda n, m: f"\\prod_{{k=1}}^{{{n}}} (x^k+\\sqrt{{{m}}})",
    lambda n, m: "{" * m + str(n),
    lambda n, m: f"{m}\x00\u202e{n}",
    lambda n, m: f"\\binom{{{m}{m}}}{{{m}}}+{n}",
    lambda n, m: f"\\frac{{1}}{{{n}^{{{n}^{{{m}}}}}}}",
    lambda n, m: "+".join(f"{m}^{{{k}}}" for k in range(40 * n)),
    lambda n, m: f"\\Gamma({m}.{n})+\\zeta({n}.{m})",
    lambda n, m: f"{m}^{{{m}^{{x}}}}+\\log_{{x}}({n}^{{x^x}})",
    lambda n, m: str(m) * n * 10,
)


# runs


def load() -> str:
    return f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} CPUs"


def cases() -> None:
    """Both error rates by file."""
    client = Rival()
    for name in ("reported", "compare"):
        table = {"porism": Counter[str](), "math-verify": Counter[str]()}
        rows = [json.loads(line) for line in (CASES / f"{name}.jsonl").read_text("utf-8").splitlines()]
        rows = [row for row in rows if "answer_type" not in row]
        verdicts = asyncio.run(_verdicts(rows))
        for row, verdict in zip(rows, verdicts, strict=True):
            expected = {True: "correct", False: "not correct"}.get(row["expected"], row["expected"])
            if expected == "undecided":
                continue
            response = row.get("response") or f"The answer is $\\boxed{{{row['answer']}}}$."
            for who, kind in (
                ("porism", verdict.kind),
                ("math-verify", _kind(client.ask(row["gold"], response))),
            ):
                table[who][_judged(expected, kind)] += 1
        for who, counts in table.items():
            print(f"{name:10} {who:12} {dict(counts)}")
    print(load())


def _kind(found: bool | str) -> str:
    return found if isinstance(found, str) else "correct" if found else "wrong"


def _judged(expected: str, kind: str) -> str:
    if kind in ("undecided", "hang") or kind not in ("correct", "wrong", "no_answer"):
        return "undecided" if kind == "undecided" else "crash or hang"
    if (kind == "correct") == (expected == "correct"):
        return "right"
    return "false correct" if kind == "correct" else "false wrong"


async def _verdicts(rows: list[dict[str, str]]) -> list[Verdict]:
    async def one(row: dict[str, str]) -> Verdict:
        answer = extract(row["response"]).answer if "response" in row else row["answer"]
        return (
            Verdict("no_answer", "") if answer is None else await verifier.verify(answer, Gold(row["gold"]))
        )

    async with Verifier(workers=WORKERS) as verifier:
        return list(await asyncio.gather(*map(one, rows)))


def speed(count: int = 10_000, blocks: int = 10) -> None:
    """Interleaved blocks; the times of both are of the same minutes."""
    items = ordinary(count)
    asyncio.run(_speed(items, blocks))


async def _speed(items: list[Item], blocks: int) -> None:
    ours, theirs = Counter[str](), Counter[str]()
    spent = [0.0, 0.0]
    size = len(items) // blocks
    with ProcessPoolExecutor(WORKERS, multiprocessing.get_context("spawn")) as pool:
        list(pool.map(rival_item, items[:20]))
        async with Verifier(workers=WORKERS) as verifier:
            await verifier.verify("x+1", Gold("x+\\sqrt{2}"))
            for start in range(0, len(items), size):
                block = items[start : start + size]
                begun = time.perf_counter()
                verdicts = await _all(verifier, block)
                between = time.perf_counter()
                found = await asyncio.to_thread(list, pool.map(rival_item, block, chunksize=25))
                spent[0] += between - begun
                spent[1] += time.perf_counter() - between
                for item, verdict, other in zip(block, verdicts, found, strict=True):
                    expected = "correct" if item.equal else "not correct"
                    ours[_judged(expected, verdict.kind)] += 1
                    theirs[_judged(expected, _kind(other))] += 1
    print(f"porism       {spent[0]:7.1f} s  {dict(ours)}")
    print(f"math-verify  {spent[1]:7.1f} s  {dict(theirs)}")
    print(load())
    report(
        Figure(what="verifier: times as fast as math-verify", value=spent[1] / spent[0]),
        Figure(what="verifier: right verdicts", value=ours["right"] / len(items) * 100, unit="%"),
        Figure(what="math-verify: right verdicts", value=theirs["right"] / len(items) * 100, unit="%"),
    )


async def _all(verifier: Verifier, items: list[Item]) -> list[Verdict]:
    return list(await asyncio.gather(*(verifier.verify(item.answer, Gold(item.gold)) for item in items)))


def mixed(count: int = 10_000, limit: float = 1.0) -> None:
    """Ordinary items alone, then with one hostile in a hundred among them."""
    plain, bad = ordinary(count), hostile(count // 100)
    both = plain + bad
    random.Random(3).shuffle(both)

    async def timed(items: list[Item]) -> tuple[float, Counter[str]]:
        async with Verifier(workers=WORKERS, limit=limit) as verifier:
            await verifier.verify("x+1", Gold("x+\\sqrt{2}"))
            begun = time.perf_counter()
            verdicts = await _all(verifier, items)
            return time.perf_counter() - begun, Counter(verdict.kind for verdict in verdicts)

    alone, _ = asyncio.run(timed(plain))
    together, kinds = asyncio.run(timed(both))
    bound = (alone + len(bad) * limit / WORKERS) * 1.1
    print(f"alone {alone:.1f} s, mixed {together:.1f} s, bound {bound:.1f} s; {dict(kinds)}; {load()}")


def hostiles(count: int = 5_000, limit: float = 0.2) -> None:
    """Every item's time from the worker's start to the verdict, and the memory of the workers."""
    items = hostile(count)
    asyncio.run(_hostiles(items, limit))


async def _hostiles(items: list[Item], limit: float) -> None:
    longest, rules, kinds = 0.0, Counter[str](), Counter[str]()
    peak = 0

    async def one(item: Item) -> None:
        nonlocal longest
        async with slots:
            begun = time.perf_counter()
            verdict = await verifier.verify(item.answer, Gold(item.gold))
            longest = max(longest, time.perf_counter() - begun)
        rules[verdict.rule] += 1
        kinds[verdict.kind] += 1

    async def watch() -> None:
        nonlocal peak
        while True:
            peak = max([peak, *worker_memory()])
            await asyncio.sleep(0.1)

    async with Verifier(workers=WORKERS, limit=limit) as verifier:
        await verifier.verify("x+1", Gold("x+\\sqrt{2}"))
        slots = asyncio.Semaphore(WORKERS)
        watcher = asyncio.create_task(watch())
        begun = time.perf_counter()
        await asyncio.gather(*map(one, items))
        spent = time.perf_counter() - begun
        watcher.cancel()
    print(
        f"{len(items)} items in {spent:.0f} s, longest {longest:.2f} s, largest worker {peak / 2**20:.0f} MiB"
    )
    print(dict(kinds), rules.most_common(12), load())


def worker_memory() -> Iterator[int]:
    """Resident bytes of every descendant of this process."""
    page = os.sysconf("SC_PAGE_SIZE")
    todo = [os.getpid()]
    while todo:
        pid = todo.pop()
        try:
            for task in Path(f"/proc/{pid}/task").iterdir():
                below = list(map(int, (task / "children").read_text().split()))
                todo += below
            if pid != os.getpid():
                yield int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * page
        except OSError:
            continue


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("cases", "speed", "mixed", "hostile"))
    parser.add_argument("--count", type=int, help="how many items, instead of the stated number")
    chosen = parser.parse_args()
    runs = {"cases": cases, "speed": speed, "mixed": mixed, "hostile": hostiles}
    runs[chosen.what](**({"count": chosen.count} if chosen.count and chosen.what != "cases" else {}))
