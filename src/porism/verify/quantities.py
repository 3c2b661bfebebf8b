"""Quantities with units, congruences, matrices, ratios and times of day."""

from __future__ import annotations

import itertools
from fractions import Fraction

from porism.verify import scalars
from porism.verify.equal import Agree, Same, same, substitute
from porism.verify.exact import NotExact, Undefined, rational
from porism.verify.lists import every, ordered
from porism.verify.shapes import definition, spread
from porism.verify.syntax import (
    NODES,
    Congruence,
    Listing,
    Matrix,
    Measured,
    Num,
    Op,
    Ratio,
    Relation,
    Sym,
    Value,
    names,
)
from porism.verify.words import singular, unit_size

YES, NO = True, False
_COUNTERS = frozenset("klmnjtq")


def measures(gold: Value, answer: Value, agree: Agree) -> Same:
    """Whether two quantities are equal, units converted; a unit may be left out."""
    units = [value.unit if isinstance(value, Measured) else "" for value in (gold, answer)]
    left, right = (value.value if isinstance(value, Measured) else value for value in (gold, answer))
    if isinstance(left, Ratio) and isinstance(right, Ratio):
        return _times(left, right, units)
    sizes = [unit_size(unit) if unit else None for unit in units]
    if sizes[0] and sizes[1]:
        if sizes[0][0] != sizes[1][0]:
            return Same(None if ("/" in sizes[0][0]) != ("/" in sizes[1][0]) else NO, "unit")
        if isinstance(left, NODES) and isinstance(right, NODES):
            left, right = Op("mul", (left, Num(sizes[0][1]))), Op("mul", (right, Num(sizes[1][1])))
            return Same(scalars.agree(left, right).equal, "unit")
    found = agree(left, right)
    if found.equal and units[0] and units[1] and singular(units[0]) != singular(units[1]):
        return Same(None, "unit")
    return found


def _times(gold: Ratio, answer: Ratio, halves: list[str]) -> Same:
    """Times of day, where one of them has a.m. or p.m.; 2:30 p.m. is 14:30, and may be written 2:30."""
    if all(halves):
        return Same(halves[0] == halves[1] and ratios(gold, answer).equal, "clock")
    whole_day = [_of_day(time, half) for time, half in zip((gold, answer), halves, strict=True)]
    found = ratios(gold, answer)
    return found if found.equal else ratios(*whole_day)


def _of_day(time: Ratio, half: str) -> Ratio:
    """The time counted through 24 hours, where the half of the day is known."""
    hour = time.parts[0]
    if not half or not isinstance(hour, Num):
        return time
    return Ratio((Num(hour.value % 12 + (12 if half == "pm" else 0)), *time.parts[1:]), time.clock)


def congruences(gold: Congruence, answer: Congruence) -> Same:
    """Whether two congruences allow the same integers."""
    try:
        sets = []
        moduli = [_modulus(value) for value in (gold, answer)]
        common = moduli[0] * moduli[1]
        for value, modulus in zip((gold, answer), moduli, strict=True):
            spelled = [one for residue in value.residues for one in spread(residue) if isinstance(one, NODES)]
            residues = [rational(residue) for residue in spelled]
            if any(residue.denominator != 1 for residue in residues) or common > 10**6:
                return Same(None, "congruence")
            steps = range(0, common, modulus)
            sets.append({residue.numerator % modulus + step for residue in residues for step in steps})
    except (NotExact, Undefined):
        return Same(None, "congruence")
    if sets[0] != sets[1]:
        return Same(NO, "congruence")
    return Same(YES if gold.name == answer.name or None in (gold.name, answer.name) else None, "congruence")


def progression(value: Value) -> Congruence | None:
    """A congruence, or x = 5k + 2 as one; None for anything else."""
    if isinstance(value, Congruence):
        return value
    named = definition(value)
    name, body = named if named else (None, value)
    if not isinstance(body, NODES) or len(names(body)) != 1 or not names(body) <= _COUNTERS:
        return None
    letter = next(iter(names(body)))
    first, second = (substitute(body, {letter: Num(Fraction(at))}) for at in (0, 1))
    step = Op("sub", (second, first))
    try:
        size, start = rational(step), rational(first)
    except (NotExact, Undefined):
        return None
    if size == 0 or size.denominator != 1 or start.denominator != 1:
        return None
    if not same(body, Op("add", (first, Op("mul", (step, Sym(letter)))))).equal:
        return None
    return Congruence(name, (first,), Num(abs(size)))


def _modulus(value: Congruence) -> int:
    modulus = rational(value.modulus)
    if modulus.denominator != 1 or modulus <= 0:
        raise NotExact("modulus")
    return modulus.numerator


def matrices(gold: Value, answer: Value, agree: Agree) -> Same:
    """Whether two matrices are equal, or a column and a tuple."""
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        shapes = [(len(value.rows), len(value.rows[0])) for value in (gold, answer)]
        if shapes[0] != shapes[1]:
            turned = shapes[0] == shapes[1][::-1] and 1 in shapes[0]
            return Same(None if turned else NO, "matrix")
        known, given = (itertools.chain.from_iterable(value.rows) for value in (gold, answer))
        return every([agree(a, b) for a, b in zip(known, given, strict=True)], "matrix")
    matrix, other = (gold, answer) if isinstance(gold, Matrix) else (answer, gold)
    assert isinstance(matrix, Matrix)
    if isinstance(other, Relation):
        named = definition(other)
        if named is None:
            return Same(None, "matrix")
        return matrices(matrix, named[1], agree) if matrix is gold else matrices(named[1], matrix, agree)
    if isinstance(other, Listing) and other.items and all(isinstance(row, Listing) for row in other.items):
        rows = Matrix(tuple(row.items for row in other.items if isinstance(row, Listing)))
        return matrices(matrix, rows, agree) if matrix is gold else matrices(rows, matrix, agree)
    flat = [item for row in matrix.rows for item in row]
    vector = 1 in (len(matrix.rows), len(matrix.rows[0]))
    if isinstance(other, Listing) and other.kind in ("tuple", "bracket") and vector:
        return ordered(flat, other.items, "vector", agree)
    return Same(NO if isinstance(other, NODES) and len(flat) > 1 else None, "matrix")


def ratios(gold: Value, answer: Value) -> Same:
    """Whether two ratios are proportional, or two times of day the same."""
    if not isinstance(gold, Ratio) or not isinstance(answer, Ratio):
        return Same(None, "ratio")
    if len(gold.parts) != len(answer.parts):
        return Same(NO, "ratio")
    found = every([same(a, b) for a, b in zip(gold.parts, answer.parts, strict=True)], "ratio")
    if found.equal or gold.clock:
        return found
    if any(same(part, Num(Fraction(0))).equal is not False for part in (*gold.parts, *answer.parts)):
        return Same(None, "ratio")  # products with zero are equal whatever the other part is
    first = gold.parts[0], answer.parts[0]
    crossed = [
        same(Op("mul", (a, first[1])), Op("mul", (b, first[0])))
        for a, b in zip(gold.parts, answer.parts, strict=True)
    ]
    return every(crossed, "ratio")


__all__ = ["congruences", "matrices", "measures", "ratios"]
