"""The example problems hold what they claim.

Every known answer is found again by brute force from the numbers in the question, by a way no candidate
uses. Every candidate's rule is written down once more, so that a right one gives the known answers, and a
wrong one its own answer on the target and a wrong one on every neighbor: only then can utility tell them apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from math import comb
from pathlib import Path
from statistics import mean

import pytest

from brute_force import (
    bipartite_trees,
    covering_genus,
    cycle_colorings,
    determinant,
    dual_degree,
    expected_rolls,
    gaps,
    necklaces,
    sl3_dimension,
    valuation,
)
from porism.data import check
from porism.types import Problem

EXAMPLES = Path(__file__).parent.parent / "examples"
FILES = sorted(EXAMPLES.glob("*.yaml"))
WRONG_ON_PURPOSE = {"method-error", "slip", "gap"}


def load(path: Path) -> Problem:
    report = check(path)
    assert not report.findings, [str(finding) for finding in report.findings]
    (problem,) = report.problems
    return problem


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def problem(request: pytest.FixtureRequest) -> Problem:
    return load(request.param)


def numbers(question: str) -> list[int]:
    return [int(x) for x in re.findall(r"\d+", question)]


def weight(question: str) -> list[int]:
    found = re.search(r"\$(\d*)\\omega_1 \+ (\d*)\\omega_2\$", question)
    assert found
    return [int(x or 1) for x in found.groups()]


def first(count: int) -> Callable[[str], list[int]]:
    return lambda question: numbers(question)[:count]


def matrix(question: str) -> list[int]:
    return numbers(question)[1:4]


Rule = Callable[..., int]
# id: (the parameters in the question, brute force, each candidate's rule)
KNOWN: dict[str, tuple[Callable[[str], list[int]], Rule, dict[str, Rule]]] = {
    "dual-curve": (
        first(3),
        dual_degree,
        {
            "a": lambda d, n, k: d * (d - 1) - n - k,
            "b": lambda d, n, k: d * (d - 1) - 2 * n - 3 * k,
            "c": lambda d, n, k: d * (d - 1) - 2 * (n + k),
            "d": lambda d, n, k: 2 * d + 2 * ((d - 1) * (d - 2) // 2 - n - k) - 2 - k,
            "e": lambda d, n, k: d * (d - 1) - 3 * n - 2 * k,
        },
    ),
    "cycle-colorings": (
        first(2),
        cycle_colorings,
        {
            "a": lambda k, n: sum((-1) ** (n - i) * k * (k - 1) ** (i - 1) for i in range(2, n + 1)),
            "b": lambda k, n: k * (k - 1) ** (n - 1),
            "c": lambda k, n: k * (k - 1) ** (n - 2) * (k - 2),
            "d": lambda k, n: (k - 1) ** n + (-1) ** n * (k - 1),
            "e": lambda k, n: (k - 1) ** n,
        },
    ),
    "necklaces": (
        first(2),
        necklaces,
        {
            "a": lambda k, p: (k**p - k) // p + k,
            "b": lambda k, p: -(-(k**p) // p),
            "c": lambda k, p: (k**p + (p - 1) * k) // p,
            "d": lambda k, p: comb(p + k - 1, k - 1),
            "e": lambda k, p: (k**p - k) // p,
        },
    ),
    "factorial-valuation": (
        lambda question: [numbers(question)[0], numbers(question)[-1]],
        valuation,
        {
            "a": lambda p, n: n // p,
            "b": lambda p, n: sum(n // p**i for i in range(1, n)),
            "c": lambda p, n: (n - sum(n // p**i % p for i in range(n))) // (p - 1),
            "d": lambda p, n: sum(i * (n // p**i) for i in range(1, n)),
            "e": lambda p, n: n // p + n // p**2,
        },
    ),
    "run-of-faces": (
        first(2),
        expected_rolls,
        {
            "a": lambda d, r: d**r,
            "b": lambda d, r: 0 if r == 0 else d * (KNOWN["run-of-faces"][2]["b"](d, r - 1) + 1),
            "c": lambda d, r: r * d**r,
            "d": lambda d, r: sum(d**i for i in range(1, r + 1)),
            "e": lambda d, r: d**r + r - 1,
        },
    ),
    "sl3-dimension": (
        weight,
        sl3_dimension,
        {
            "a": lambda p, q: (p + 1) * (q + 1),
            "b": lambda p, q: comb(p + 2, 2) * comb(q + 2, 2),
            "c": lambda p, q: (p + 1) * (q + 1) * (p + q + 2) // 2,
            "d": lambda p, q: (p + 1) * (q + 1) * (p + q + 1) // 2,
            "e": lambda p, q: comb(p + 2, 2) * comb(q + 2, 2) - comb(p + 1, 2) * comb(q + 1, 2),
        },
    ),
    "equal-entries-determinant": (
        matrix,
        determinant,
        {
            "a": lambda n, d, b: (d - b) ** (n - 1) * (d + n * b),
            "b": lambda n, d, b: (d - b) ** (n - 1) * (d + (n - 1) * b),
            "c": lambda n, d, b: d * (d - b) ** (n - 1),
            "d": lambda n, d, b: d**n - b**n,
            "e": lambda n, d, b: (d - b) ** n + n * b * (d - b) ** (n - 1),
        },
    ),
    "bipartite-trees": (
        first(2),
        bipartite_trees,
        {
            "a": lambda m, n: m ** (m - 1) * n ** (n - 1),
            "b": lambda m, n: m ** (n - 1) * n ** (m - 1),
            "c": lambda m, n: (m + n) * n ** (m - 1) * m ** (n - 1),
            "d": lambda m, n: m**n * m ** (m - 2),
            "e": lambda m, n: n ** (m - 1) * m ** (n - 1),
        },
    ),
    "semigroup-gaps": (
        first(2),
        gaps,
        {
            "a": lambda a, b: (a - 1) * (b - 1) // 2,
            "b": lambda a, b: a * b - a - b,
            "c": lambda a, b: (a - 1) * (b - 1),
            "d": lambda a, b: sum(i * b // a for i in range(1, a)),
            "e": lambda a, b: (a * b - a - b) // 2,
        },
    ),
    "covering-genus": (
        first(3),
        covering_genus,
        {
            "a": lambda d, h, r: (2 - (d * (2 - 2 * h) + r)) // 2,
            "b": lambda d, h, r: (2 - (d * (2 - 2 * h) - r)) // 2,
            "c": lambda d, h, r: 1 + d * (h - 1),
            "d": lambda d, h, r: 1 + d * (h - 1) + r,
            "e": lambda d, h, r: 1 + d * (h - 1) + r // 2,
        },
    ),
}


def test_every_file_is_checked_here() -> None:
    assert [path.stem for path in FILES] == sorted(KNOWN)
    assert all(load(path).id == path.stem for path in FILES)


def test_known_answers_by_brute_force(problem: Problem) -> None:
    read, brute, _ = KNOWN[problem.id]
    for question, answer in [
        (problem.question, problem.answer),
        *((neighbor.question, neighbor.answer) for neighbor in problem.neighbors),
    ]:
        assert str(brute(*read(question))) == answer, question


def test_rules_separate(problem: Problem) -> None:
    read, _, rules = KNOWN[problem.id]
    assert set(rules) == {candidate.id for candidate in problem.candidates}
    for candidate in problem.candidates:
        rule = rules[candidate.id]
        assert str(rule(*read(problem.question))) == candidate.answer
        assert (candidate.answer == problem.answer) is candidate.correct
        for neighbor in problem.neighbors:
            assert (str(rule(*read(neighbor.question))) == neighbor.answer) is candidate.correct, neighbor.id


def test_shape(problem: Problem) -> None:
    assert [candidate.id for candidate in problem.candidates] == ["a", "b", "c", "d", "e"]
    assert sum(candidate.correct is True for candidate in problem.candidates) == 2
    assert len({candidate.text for candidate in problem.candidates}) == 5
    assert len(problem.neighbors) >= 3
    for candidate in problem.candidates:
        assert (candidate.kind == "right") if candidate.correct else (candidate.kind in WRONG_ON_PURPOSE)


def test_answers_stand_at_the_end(problem: Problem) -> None:
    for candidate in problem.candidates:
        assert candidate.text.rstrip().endswith(rf"The answer is $\boxed{{{candidate.answer}}}$.")
        assert candidate.text.count(r"\boxed") == 1


def test_copying_never_pays(problem: Problem) -> None:
    own = {problem.answer, *(candidate.answer for candidate in problem.candidates)}
    answers = [neighbor.answer for neighbor in problem.neighbors]
    assert not own & set(answers)
    assert len(set(answers)) == len(answers)


def test_length_and_style_do_not_tell(problem: Problem) -> None:
    texts = {flag: [c.text for c in problem.candidates if c.correct is flag] for flag in (True, False)}
    words = [len(text.split()) for text in (*texts[True], *texts[False])]
    assert min(words) >= 60
    assert max(words) <= 130
    sizes = {flag: mean(len(text) for text in group) for flag, group in texts.items()}
    assert 0.8 <= sizes[True] / sizes[False] <= 1.25
    for text in (*texts[True], *texts[False]):
        assert text.count("$$") == 2
        assert "\nHere $" in text
        assert re.search(r"\nSo \$|\$[A-Z]_\d = |So \$", text)


def test_order_does_not_tell() -> None:
    """Over all files no place holds the right candidates too often, and neither is longest all the time."""
    places = Counter(c.id for path in FILES for c in load(path).candidates if c.correct)
    assert max(places.values()) <= 0.7 * len(FILES)
    longest = [bool(max(load(path).candidates, key=lambda c: len(c.text)).correct) for path in FILES]
    assert 0.2 <= mean(longest) <= 0.8
