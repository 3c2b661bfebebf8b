"""Words that stand for values: numbers, yes and no, no solution, units.

A unit is known with its size in a base unit, so that 5 m is 500 cm and never 5 cm; any other word after
a number is a counted noun.
"""

from __future__ import annotations

import re
from fractions import Fraction

_SMALL = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty"
)
_TENS = "thirty forty fifty sixty seventy eighty ninety hundred"
NUMBER_WORDS = {word: str(at) for at, word in enumerate(_SMALL.split())} | {
    word: str(10 * at) for at, word in enumerate(_TENS.split(), 3)
}

_SCALES = {"thousand": 1000, "million": 10**6, "billion": 10**9}
SCALE_WORDS = {word: str(size) for word, size in _SCALES.items()} | {"trillion": str(10**12), "dozen": "12"}
_PARTS = {2: "half halves", 3: "third thirds", 4: "quarter quarters fourth fourths", 5: "fifth fifths",
          6: "sixth sixths", 8: "eighth eighths", 10: "tenth tenths"}  # fmt: skip
FRACTION_WORDS = {word: Fraction(1, part) for part, words in _PARTS.items() for word in words.split()}

_YES = frozenset(("yes", "true", "correct", "holds", "it is true", "the statement is true"))
_NO = frozenset(("no", "false", "incorrect", "it is false", "the statement is false", "not true"))
_EMPTY = re.compile(
    r"(?:there (?:is|are|exists?) )?(?:no|none|empty|the empty set|empty set|no such)\b"
    r"(?: (?:real|integer|positive|valid|such|possible|other|integral|rational|natural|solutions?|roots?|values?|"
    r"numbers?|integers?|pairs?|triples?|functions?|exists?|exist|of|x|n|k|set|answers?|elements?))*"
)
_UNDEFINED = frozenset(("undefined", "does not exist", "dne", "doesn't exist", "not defined", "diverges", "divergent",
                        "limit does not exist", "the limit does not exist"))  # fmt: skip

_INFINITE = re.compile(r"(?:there are |an? )?(?:infinitely many|infinite(?: number of)?)(?: [a-z]+)?")
_EXCLUSIVE = (
    frozenset(("first", "second", "third", "fourth", "fifth", "sixth")),
    frozenset(("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")),
    frozenset(NUMBER_WORDS),
    *map(frozenset, (("odd", "even"), ("left", "right"), ("increasing", "decreasing"), ("always", "never"))),
)

_F = Fraction
_UNITS: dict[str, tuple[str, Fraction]] = {}
for _base, _names in {
    "length": {"m meter meters metre metres": _F(1), "cm centimeter centimeters centimetre centimetres": _F(1, 100),
               "mm millimeter millimeters millimetre millimetres": _F(1, 1000),
               "km kilometer kilometers kilometre kilometres": _F(1000), "in inch inches": _F(254, 10000),
               "ft foot feet": _F(3048, 10000), "yd yard yards": _F(9144, 10000), "mi mile miles": _F(1609344, 1000)},
    "time": {"s sec second seconds": _F(1), "min mins minute minutes": _F(60), "h hr hrs hour hours": _F(3600),
             "day days": _F(86400), "week weeks": _F(604800), "ms": _F(1, 1000)},
    "mass": {"kg kilogram kilograms": _F(1), "g gram grams": _F(1, 1000), "mg": _F(1, 10**6),
             "t ton tonne tonnes tons": _F(1000), "lb lbs pound pounds": _F(45359237, 10**8),
             "oz ounce ounces": _F(45359237, 16 * 10**8)},
    "volume": {"l liter liters litre litres": _F(1), "ml": _F(1, 1000), "gallon gallons": _F(3785411784, 10**9)},
    "money": {"dollar dollars usd": _F(1), "cent cents": _F(1, 100)},
    "euro": {"euro euros eur": _F(1)},
    "angle": {"degree degrees deg": _F(1)},
}.items():  # fmt: skip
    for _spellings, _size in _names.items():
        for _spelling in _spellings.split():
            _UNITS[_spelling] = (_base, _size)

_RATES = {"mph": "mile/hour", "kph": "km/hour", "kmh": "km/hour", "fps": "ft/s"}
_SHORT = frozenset(("m", "s", "g", "h", "t", "l", "in", "min", "d"))


_ALTERING_WORDS = (
    "hundred score gross squared cubed factorial mod modulo remainder base minus plus times divided multiplied "
    "over sqrt root percent mille permille negative below above under beyond greater least most "
    "than except but not no never none nor impossible invalid wrong incorrect false too is are was were isn't "
    "approximately about nearly almost or up"
)
_ALTERING = frozenset(_ALTERING_WORDS.split())


def alters(noun: str) -> bool:
    """Whether words after a number change what it says (5 million, 5 or more, 5 is wrong): no unit and no noun."""
    words = re.findall(r"[a-z']+", noun.lower())
    return (
        "per cent" in noun.lower()
        or bool(re.search(r"[\d\\=+*<>-]", re.sub(r"\^ ?[23]|-(?=[a-z])", "", noun)))
        or any(word in _ALTERING or word in NUMBER_WORDS or word in SCALE_WORDS for word in words)
        or any(word in FRACTION_WORDS for word in words)
    )


def is_unit(word: str) -> bool:
    """Whether a run of letters is a unit's name (one-letter names and `in`, `min` are left to mathematics)."""
    return word.lower() in _UNITS and word not in _SHORT


def unit_size(unit: str) -> tuple[str, Fraction] | None:
    """What a unit measures (with its power) and its size in the base unit; None for a counted noun."""
    text = unit.lower().strip(" .")
    text = _RATES.get(text, text)
    over, slash, under = text.partition("/") if "/" in text else text.partition(" per ")
    if slash:
        if re.search(r"/| per ", under):
            return None
        sizes = unit_size(over), unit_size(under)
        if sizes[0] is None or sizes[1] is None or not over:
            return None
        return f"{sizes[0][0]}/{sizes[1][0]}", sizes[0][1] / sizes[1][1]
    power = 1
    if match := re.fullmatch(
        r"(?:(sq|square|cubic|cu)\.? )?([a-z]+)(?: ?\^ ?([23]))?(?: (squared|cubed))?", text
    ):
        before, name, raised, after = match.groups()
        power = (
            int(raised)
            if raised
            else {"sq": 2, "squ": 2, "cub": 3, "cu": 3}.get((before or after or "")[:3], 1)
        )
        if name in _UNITS:
            base, size = _UNITS[name]
            return f"{base}^{power}", size**power
    return None


def plain_words(text: str) -> str:
    r"""The lower-case words of a text that is only words (inside \text or not), else an empty string."""
    text = re.sub(r"\\(?:text|mbox|textbf|textit|mathrm|textrm|operatorname)\s*\{([^{}]*)\}", r" \1 ", text)
    text = re.sub(r"\s+", " ", text.replace("\\ ", " ")).strip(" .!*\"'")
    return text.lower() if re.fullmatch(r"[A-Za-z][A-Za-z' ,.-]*", text) else ""


def without_article(words: str) -> str:
    """The words without the article that opens them."""
    return re.sub(r"^(?:an?|the|on) (?=\w)", "", words)


def exclusive(left: str, right: str) -> bool:
    """Whether two phrases differ in one word each, and these exclude each other: first and second player."""
    pairs = (without_article(left).split(), without_article(right).split())
    if len(pairs[0]) != len(pairs[1]):
        return False
    unlike = [{a, b} for a, b in zip(*pairs, strict=True) if a != b]
    return len(unlike) == 1 and any(unlike[0] <= words for words in _EXCLUSIVE)


def known_words(words: str) -> str | None:
    """yes, no, empty, undefined or infinite for phrases that mean these, else None."""
    words = words.strip(" ,.")
    if words in _YES:
        return "yes"
    if words in _NO:
        return "no"
    if words in _UNDEFINED:
        return "undefined"
    if _INFINITE.fullmatch(words):
        return "infinite"
    if words != "no" and _EMPTY.fullmatch(words):
        return "empty"
    return None


def number_phrase(text: str) -> str | None:
    """The digits of a number in words (one hundred and five, twenty-one, two thousand), or None."""
    words = [word for word in plain_words(text).replace("-", " ").split() if word != "and"]
    if len(words) < 2 or not all(word in NUMBER_WORDS or word in _SCALES for word in words):
        return None
    total = here = 0
    for word in words:
        if word == "hundred":
            here = max(here, 1) * 100
        elif word in _SCALES:
            total, here = total + max(here, 1) * _SCALES[word], 0
        else:
            here += int(NUMBER_WORDS[word])
    return str(total + here)


def singular(noun: str) -> str:
    """A noun without its plural ending, lower case, for comparison."""
    noun = noun.lower().strip(" .")
    return noun[:-1] if noun.endswith("s") and len(noun) > 3 else noun


__all__ = [
    "FRACTION_WORDS",
    "NUMBER_WORDS",
    "SCALE_WORDS",
    "alters",
    "exclusive",
    "is_unit",
    "known_words",
    "number_phrase",
    "plain_words",
    "singular",
    "unit_size",
    "without_article",
]
