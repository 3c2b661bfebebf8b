r"""Names of groups and growth rates: \mathbb{Z}/2 \times C_3, S_3, O(n \log n).

Abelian groups are compared by their invariants, so Z/6 is Z/2 x Z/3 and Z/4 is not (Z/2)^2. Of the others
only equal names are equal; different orders, or abelian and not, prove a difference.
"""

from __future__ import annotations

import math
import re
from collections import Counter

from porism.verify.equal import Same

_CYCLIC = re.compile(
    r"(?:\\mathbb\{Z\}|\\mathbf\{Z\}|Z|\\Z)(?:/\(?(\d{1,9})(?:\\mathbb\{Z\}|\\mathbf\{Z\}|Z)?\)?|_\{?(\d{1,9})\}?)?"
    r"|(?:C|\\mathrm\{C\})_\{?(\d{1,9})\}?"
)
_NAMED = re.compile(r"(?:\\mathrm\{)?(S|A|D|Q|Dic)\}?_\{?(\d{1,6})\}?")
_CYCLIC_WORDS = re.compile(r"(?:\\text\{)?(?:the)?cyclic(?:group)?(?:of)?order\}?(\d{1,6})\}?")
_FACTOR = re.compile(r"\\times|\\oplus|\\otimes")
_POWER = re.compile(r"(.*?)\^(?:\{(\d{1,3})\}|(\d))")
_LINEAR = re.compile(
    r"(?:\\(?:mathrm|operatorname|text)\{)?(?P<family>P?[SG]L|S?[OU]|P?Sp)\}?(?:_\{?(?P<size>\d{1,3})\}?\(|\((?P<first>\d{1,3}),)"
    r"(?P<ring>\\math(?:bb|bf)\{?[A-Z]\}?(?:_\{?\d{1,6}\}?)?|[ZQRC]|F_\{?\d{1,6}\}?|\d{1,6})\)"
)
_GROWTH = re.compile(r"(?:\\mathcal\{O\}|\\mathrm\{O\}|\\Theta|\\Omega|Theta|Omega|O|o)\((.*)\)", re.DOTALL)


def growth(text: str) -> tuple[str, str] | None:
    """The class (O, Theta, Omega, o) and the rate of an asymptotic bound."""
    match = _GROWTH.fullmatch(text.strip())
    if match is None:
        return None
    head = re.sub(r"\\mathcal|\\mathrm|[\\{}]", "", text[: match.start(1) - 1]).strip()
    return head, match[1]


def invariants(text: str) -> tuple[int, tuple[int, ...], tuple[str, ...]] | None:
    """Free rank, prime powers, and the names of other factors; None when the text is not a group."""
    text = re.sub(r"\s+", "", text)
    if match := _CYCLIC_WORDS.fullmatch(text):
        text = f"C_{match[1]}"
    if text in ("trivialgroup", "thetrivialgroup", "\\text{trivial}", "\\text{trivialgroup}"):
        text = "C_1"
    if not re.search(r"\\mathbb\{Z\}|\\mathbf\{Z\}|[CSADZQVK]_|Z/", text):
        return None
    rank, powers, named = 0, Counter[int](), Counter[str]()
    for factor, times in map(_power, _FACTOR.split(text)):
        if match := _CYCLIC.fullmatch(factor):
            digits = next((part for part in match.groups() if part), None)
            if digits is None:
                rank += times
            else:
                powers.update({power: count * times for power, count in _prime_powers(int(digits)).items()})
        elif re.fullmatch(r"[VK]_\{?4\}?", factor):
            powers[2] += 2 * times
        elif match := _NAMED.fullmatch(factor):
            family, size = match[1], int(match[2])
            if (family, size) == ("S", 3):
                family = "D"
            if (family, size) in (("S", 2), ("A", 3)):
                powers[size] += times
            elif (family, size) not in (("S", 1), ("A", 1), ("A", 2)):
                named[f"{family}_{size}"] += times
        else:
            return None
    return rank, tuple(sorted(powers.elements())), tuple(sorted(named.elements()))


def _power(factor: str) -> tuple[str, int]:
    times = 1
    if match := _POWER.fullmatch(factor):
        factor, times = match[1], int(match[2] or match[3])
    return (factor[1:-1] if factor[:1] == "(" and factor[-1:] == ")" else factor), times


def _prime_powers(n: int) -> Counter[int]:
    found: Counter[int] = Counter()
    prime = 2
    while n > 1:
        if prime * prime > n:
            prime = n
        power = 1
        while n % prime == 0:
            n //= prime
            power *= prime
        if power > 1:
            found[power] += 1
        prime += 1
    return found


def _maybe_alike(one: str, other: str) -> bool:
    """Whether groups of two families may be one: no dihedral group is a quaternion, a larger S_n or an A_n."""
    sizes = dict(name.split("_") for name in (one, other))
    if "D" not in sizes or int(sizes.pop("D")) < 3:
        return True
    ((family, size),) = sizes.items()
    return family not in "QSA" or int(size) < (8 if family == "Q" else 4)


def _order(name: str) -> int | None:
    family, _, digits = name.partition("_")
    size = int(digits)
    if family in "SA" and size <= 100:
        return math.factorial(size) // (2 if family == "A" else 1)
    return size if family == "Q" else None  # D_n has n or 2n elements, by author


def matrix_group(text: str) -> tuple[str, int, str] | None:
    """The family, the size and the ring of SL_2(\\mathbb{Z}) and its like."""
    match = _LINEAR.fullmatch(re.sub(r"\s+", "", text))
    if match is None:
        return None
    ring = re.sub(r"\\mathbb|\\mathbf|\\mathrm|[{}]", "", match["ring"])
    return (
        match["family"],
        int(match["size"] or match["first"]),
        re.sub(r"^(?:F_|GF\()?(\d+)\)?$", r"F_\1", ring),
    )


def _matrix_groups(gold: tuple[str, int, str], answer: tuple[str, int, str]) -> Same:
    """Equal names are equal groups; over one of Z, Q, R, C or a field, SL_n and GL_n and other sizes are not."""
    if gold == answer:
        return Same(True, "group")
    plain = all(side[0] in ("SL", "GL") and side[1] > 1 for side in (gold, answer))
    infinite = gold[2] == answer[2] and gold[2] in "ZQRC"
    orders = [_field_order(*side) for side in (gold, answer)]
    unequal = None not in orders and orders[0] != orders[1]
    return Same(False if (plain and infinite) or unequal else None, "group")


def _field_order(family: str, n: int, ring: str) -> int | None:
    """The number of elements of GL_n(q), SL_n(q), PGL_n(q), PSL_n(q)."""
    q = int(ring[2:]) if ring[:2] == "F_" and ring[2:].isdigit() else 0
    if (
        family[-2:] not in ("GL", "SL")
        or not 2 <= n <= 12
        or not 2 <= q <= 1000
        or len(_prime_powers(q)) != 1
    ):
        return None
    size: int = math.prod(q**n - q**power for power in range(n))
    if family != "GL":
        size //= q - 1
    return size // math.gcd(n, q - 1) if family == "PSL" else size


def agree(gold: str, answer: str) -> Same | None:
    """Whether two names mean the same group; None when either is not a group's name."""
    linear = matrix_group(gold), matrix_group(answer)
    if linear[0] and linear[1]:
        return _matrix_groups(linear[0], linear[1])
    left, right = invariants(gold), invariants(answer)
    if left is None or right is None:
        return None
    if left == right:
        return Same(True, "group")
    if not left[2] and not right[2]:
        return Same(False, "group")
    orders = []
    for rank, powers, named in (left, right):
        sizes = [_order(name) for name in named]
        known = rank == 0 and all(size is not None for size in sizes)
        orders.append(math.prod([*powers, *(size for size in sizes if size)]) if known else None)
    if None not in orders and orders[0] != orders[1]:
        return Same(False, "group")
    families = [tuple(name.partition("_")[0] for name in side[2]) for side in (left, right)]
    if families[0] == families[1] and left[:2] == right[:2]:
        return Same(None if {left[2], right[2]} == {("D_3",), ("D_6",)} else False, "group")
    if families[0] != families[1] and len(left[2]) == len(right[2]) == 1 and left[:2] == right[:2]:
        return Same(None if _maybe_alike(left[2][0], right[2][0]) else False, "group")
    small = re.compile(r"D_[12]|Dic_1|Q_[1-4]")
    if bool(left[2]) != bool(right[2]) and not any(map(small.fullmatch, left[2] + right[2])):
        return Same(False, "group")
    return Same(None, "group")


__all__ = ["agree", "growth", "invariants", "matrix_group"]
