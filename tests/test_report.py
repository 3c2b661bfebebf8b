"""The report as a file: what it says, what it never contains, and that a broken run still gives one."""

from __future__ import annotations

import asyncio
import csv
import io
import re
import shutil
from base64 import b64decode, b64encode
from dataclasses import replace
from gzip import decompress
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from porism.errors import ConfigError, StoreError
from porism.report import write
from porism.report.evidence import final_block, first_difference
from porism.report.load import Folder
from porism.report.maths import checked, mathml
from porism.report.page import Layout, write_html
from porism.report.template import duration
from porism.report.text import blocks, clean, inline, to_html
from porism.run import rank
from porism.store import Row, Store
from porism.types import Cell
from porism.verify import VERSION
from reports import benched, hostile, hostile_run, made, mathematical, report
from samples import problem

ALLOWED = {
    *(
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "a",
        "header",
        "div",
        "span",
        "nav",
        "button",
        "main",
        "h1",
        "h2",
    ),
    *(
        "h3",
        "h4",
        "h5",
        "p",
        "section",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "ul",
        "ol",
        "li",
        "em",
        "strong",
    ),
    *(
        "svg",
        "line",
        "circle",
        "g",
        "text",
        "figure",
        "figcaption",
        "rect",
        "path",
        "details",
        "summary",
        "article",
        "code",
        "pre",
        "footer",
        "script",
        "br",
        "hr",
    ),
    *(
        "blockquote",
        "mark",
        "form",
        "label",
        "input",
        "select",
        "option",
        "output",
        "math",
        "mrow",
        "mi",
        "mo",
        "mn",
    ),
    *(
        "mtext",
        "mspace",
        "mfrac",
        "msqrt",
        "mroot",
        "msub",
        "msup",
        "msubsup",
        "munder",
        "mover",
        "munderover",
        "mtable",
    ),
    *("mtr", "mtd", "mphantom", "mpadded", "mstyle", "b", "i"),
}


class Tags(HTMLParser):
    """Every element with its attributes, and the text outside of style and script."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.raw: list[str] = []
        self._inside = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in ("script", "style"):
            self.raw.append(data)
        else:
            self.text += data


def unpacked(html: str) -> str:
    """The page with its packed problems in place."""
    return re.sub(
        r'<script type="application/gzip"[^>]*>([^<]*)</script>',
        lambda m: decompress(b64decode(m[1])).decode(),
        html,
    )


def check_harmless(html: str) -> Tags:
    """Only elements of ours, no handler, no inline style, no address outside of the page."""
    found = Tags(unpacked(html))
    scripts = 0
    for tag, attributes in found.tags:
        assert tag in ALLOWED, tag
        scripts += tag == "script"
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in (
                "style",
                "src",
                "srcset",
                "srcdoc",
                "action",
                "formaction",
                "data",
                "xlink:href",
            ), tag
            if name == "href":
                assert (value or "").startswith("#"), value
    assert scripts == 1
    return found


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("report") / "valuation", [mathematical()])


def test_everything_a_reader_needs_is_there(run: Path) -> None:
    html = report(run).read_text(encoding="utf-8")
    found = check_harmless(html)
    for text in (
        "a is ahead with utility",
        "still has a winner",
        "labelled right",
        "labelled wrong",
        "method-error",
        "by a person",
        "no example",
        "a against b",
        "Known answer",
        "final answer",
        "rollouts answered",
        "Prompt with an example",
        "fake/rate_right=0.9",
        r"\broken{",
    ):
        assert text in found.text, text
    assert html.count("<math") >= 20
    assert 'class="h0"' in html
    assert "[[helps]]" in found.text


def test_the_policy_names_the_one_style_and_the_one_script(run: Path) -> None:
    html = report(run).read_text(encoding="utf-8")
    policy = re.search(r'Security-Policy" content="([^"]*)"', html)
    assert policy
    assert policy[1].replace("&#39;", "'").startswith("default-src 'none'; style-src 'sha256-")
    for element in ("style", "script"):
        bodies = re.findall(rf"<{element}>(.*?)</{element}>", html, re.DOTALL)
        assert len(bodies) == 1
        digest = b64encode(sha256(bodies[0].encode()).digest()).decode()
        assert f"{element}-src &#39;sha256-{digest}&#39;" in policy[0] or f"sha256-{digest}" in policy[1]


@pytest.mark.slow
@pytest.mark.ci
def test_hostile_texts_stay_texts(tmp_path: Path) -> None:
    html = report(hostile_run(tmp_path / "run")).read_text(encoding="utf-8")
    check_harmless(html)
    for character in "\u202e\u2066\x1b\x00":
        assert character not in html
    assert "[U+202E]24" in html
    assert len(html) < 20_000_000


@pytest.mark.parametrize("name", hostile())
def test_each_hostile_text_alone(name: str) -> None:
    text = hostile()[name]
    html = to_html(text)
    for tag, attributes in Tags(html).tags:
        assert tag in ALLOWED, tag
        assert not {"style", "href", "src"} & set(attributes)
        assert not any(key.startswith("on") for key in attributes)
    assert "<script" not in html
    assert "<script" not in inline(text)
    assert len(html) < 1_500_000


@pytest.mark.parametrize(
    ("markup", "result"),
    [
        ("<math><mi>x</mi></math>", "<math><mi>x</mi></math>"),
        ('<math><mi href="javascript:1">x</mi></math>', None),
        ("<math><script>1</script></math>", None),
        ('<math><mi onclick="1">x</mi></math>', None),
        ('<math><mspace width="100em"/></math>', None),
        ("<math><mi>&evil;</mi></math>", None),
        ("<math><mi>a < b</mi></math>", None),
        (
            '<math><mtd style="text-align: left;color:red"></mtd></math>',
            '<math><mtd class="al"></mtd></math>',
        ),
        (
            '<math><menclose notation="box"><mi>x</mi></menclose></math>',
            '<math><mrow class="boxed"><mi>x</mi></mrow></math>',
        ),
    ],
)
def test_only_plain_mathml_passes(markup: str, result: str | None) -> None:
    assert checked(markup) == result


@pytest.mark.parametrize(
    "latex",
    [r"\frac{1", r"\nosuch{x}", r"\href{javascript:alert(1)}{x}", "x^" * 3000, "{" * 100, r"\kern100em x"],
)
def test_what_cannot_be_converted_is_shown_as_written(latex: str) -> None:
    shown = mathml(latex, False)
    assert shown.startswith('<code class="latex"')
    assert Tags(shown).text == latex


@pytest.mark.parametrize(
    "latex",
    [
        r"\begin{align}a&=b\\c&=d\end{align}",
        r"\begin{equation}\label{e}x\tag{1}\end{equation}",
        r"\mbox{if } x \in \mathbb{Z}_{\ge 0}",
        r"\begin{cases}1&x>0\\0&\text{else}\end{cases}",
        r"\boxed{\frac{1}{2}}",
        r"\left\lfloor\frac{n}{p}\right\rfloor",
    ],
)
def test_what_mathematicians_write_is_converted(latex: str) -> None:
    assert "<math" in mathml(latex, True)


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("a $x$ b $$y$$ c \\(z\\) d \\[w\\]", ["x", "y", "z", "w"]),
        ("costs $5 and $6", []),
        ("costs \\$5 and $x$", ["x"]),
        ("`$x$` and $y$", ["y"]),
        ("```\n$x$\n```\n$y$", ["y"]),
        ("\\begin{align}a&=b\\end{align}", ["\\begin{align}a&=b\\end{align}"]),
        ("\\begin{theorem}a\\end{theorem}", []),
        ("$a\n\nb$", []),
        ("$a$1", []),
        ("$\\$$", ["\\$"]),
    ],
)
def test_formulas_are_found(text: str, formulas: list[str]) -> None:
    assert [f for block in blocks(text) for f in block.formulas] == formulas


def test_a_stop_stays_with_its_formula() -> None:
    assert "</math>.</span>" in to_html("So $v=48$. The answer")
    assert '<span class="nb">' not in to_html("So $v=48$ and $$x$$.")


def test_answers_are_formulas_where_they_can_be() -> None:
    assert inline(r"\frac{1}{2}").startswith("<math><mfrac>")
    assert inline(r"$x^2$ or 3").startswith("<math><msup>")
    assert inline("12 < 13") == "12 &lt; 13"
    assert inline(r"\nosuch{1}") == r"\nosuch{1}"


def test_long_texts_are_cut_in_the_middle_and_it_is_said() -> None:
    shown = clean("a" * 30_000 + "z" * 30_000, 1000)
    assert shown.startswith("aaa")
    assert shown.endswith("zzz")
    assert "59,000 characters left out" in shown


def test_the_places_to_look_at() -> None:
    right = blocks("There are 10 of them.\n\nAnd 3 more.\n\n$v = \\boxed{13}$")
    wrong = blocks("There are 10 of them.\n\nSo $v=10$.\n\nThe answer is 10.")
    assert first_difference(right, wrong, "Why 3?") == (2, "13")
    assert first_difference(wrong, right, "") is None
    assert final_block(right, "13") == 2
    assert final_block(wrong, "10") == 2
    assert final_block(wrong, None) is None
    assert '<mn class="mark">13</mn>' in right[2].marked("13")
    assert "<mark>3</mark>" in right[1].marked("3")
    assert right[0].marked("99") == right[0].html


async def write_with(run: Path, wanted: str, plain: int, packed: int) -> str:
    file = run.with_suffix(".html")
    async with Folder(run) as folder:
        await write_html(folder, file, Layout(wanted=[wanted], plain=plain, packed=packed))
    return file.read_text(encoding="utf-8")


def test_many_problems_are_packed_and_some_asked_for(tmp_path: Path) -> None:
    run = made(tmp_path / "many", [problem(f"q{i}") for i in range(14)], rollouts=2)
    html = asyncio.run(write_with(run, "q13", 30_000, 1_000_000))
    found = check_harmless(html)
    assert 0 < html.count('type="application/gzip"') < 13
    assert 'id="z13"' not in html
    for i in range(14):
        assert f"Method 0 of q{i}:" in found.text
    html = asyncio.run(write_with(run, "q13", 30_000, 0))
    assert 'type="application/gzip"' not in html
    assert "left out to keep the file small" in html


# A broken run still gives a report


def broken(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "broken"))


def text_of(run: Path) -> str:
    return check_harmless(report(run).read_text(encoding="utf-8")).text


def test_a_torn_run(run: Path, tmp_path: Path) -> None:
    copy = broken(run, tmp_path)
    index = copy / "index.jsonl"
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join(lines[:-9]) + lines[-9][:20])
    text = text_of(copy)
    assert "1 unreadable lines" in text
    assert "not finished" in text


def test_a_run_whose_texts_are_gone(run: Path, tmp_path: Path) -> None:
    copy = broken(run, tmp_path)
    shutil.rmtree(copy / "text")
    assert "cannot be read" in text_of(copy)


def test_a_run_without_answers(run: Path, tmp_path: Path) -> None:
    copy = broken(run, tmp_path)
    (copy / "index.jsonl").unlink()
    text = text_of(copy)
    assert "Nothing has been answered yet" in text
    assert "Nothing is decided yet" in text


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 1}'])
def test_a_run_whose_settings_are_torn(run: Path, tmp_path: Path, content: bytes) -> None:
    copy = broken(run, tmp_path)
    (copy / "run.json").write_bytes(content)
    assert "Nothing can be ranked" in text_of(copy)


def test_a_run_without_problems(run: Path, tmp_path: Path) -> None:
    copy = broken(run, tmp_path)
    (copy / "problems.jsonl").write_bytes(b"")
    assert "holds no problem" in text_of(copy)
    (copy / "problems.jsonl").write_bytes(b'{"id": "x"')
    assert "Nothing can be ranked" in text_of(copy)


def test_a_run_that_a_budget_stopped(tmp_path: Path) -> None:
    run = made(tmp_path / "stopped", [mathematical()], model="fake/max_n=1", max_requests=40)
    text = text_of(run)
    assert "stopped before its plan was done" in text
    assert "not finished" in text


def test_a_run_that_was_killed(run: Path, tmp_path: Path) -> None:
    copy = broken(run, tmp_path)
    with Store(copy) as store:
        store.update_settings(lambda old: {**old, "sessions": [{"started": "2026-01-01T00:00:00+00:00"}]})
    assert "still runs, or it was killed" in text_of(copy)


def test_a_run_with_failures(tmp_path: Path) -> None:
    run = made(tmp_path / "failing", [problem()], model="fake/fail=0.2", rollouts=2)
    assert "Failed attempts" in text_of(run)


def test_a_run_that_does_not_fit_the_model(tmp_path: Path) -> None:
    run = made(tmp_path / "long", [problem()], model="fake/context=80", max_tokens=60, rollouts=2)
    text = text_of(run)
    assert "rollouts were never answered" in text
    assert "longer than the context" in text


def test_what_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no run folder"):
        report(tmp_path)
    with pytest.raises(ConfigError, match="no run here"):
        asyncio.run(write(tmp_path / "nothing", tmp_path / "x.html"))


def test_an_unknown_problem_is_named(run: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'valuation'"):
        report(run, "valuatoin")


def test_nothing_is_lost_where_the_report_cannot_be_written(run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(StoreError, match="cannot be written"):
        asyncio.run(write(run, tmp_path / "there"))
    assert list(tmp_path.iterdir()) == [tmp_path / "there"]


# Tables


def test_csv(run: Path, tmp_path: Path) -> None:
    file = tmp_path / "ranking.csv"
    text = asyncio.run(write(run, file, format="csv"))
    assert file.read_text(encoding="utf-8") == text
    rows = list(csv.DictReader(io.StringIO(text)))
    assert rows[0]["candidate"] == "a"
    assert len(rows) == 4
    assert rows[3]["candidate"] == ""
    assert rows[0]["labelled"] == "right"
    assert float(rows[0]["low"]) <= float(rows[0]["utility"]) <= float(rows[0]["high"])
    assert sum(int(row["decided"]) for row in rows) == 4 * 3 * 8


def test_csv_holds_no_formula_for_a_spreadsheet(tmp_path: Path) -> None:
    run = made(tmp_path / "run", [problem("=1+1")], rollouts=2)
    text = asyncio.run(write(run, None, format="csv"))
    assert "'=1+1" in text
    assert "\n=1+1" not in text


def test_markdown(run: Path) -> None:
    text = asyncio.run(write(run, None, format="md"))
    assert "| 1 | a |" in text
    assert "(no example)" in text
    assert "a is ahead" in text
    only = asyncio.run(write(run, None, format="md", problems=["valuation"]))
    assert only == text


# Benchmarks


def test_a_benchmark_shows_every_method(tmp_path: Path) -> None:
    run = benched(tmp_path / "bench")
    html = report(run).read_text(encoding="utf-8")
    text = check_harmless(html).text
    for words in (
        "The comparison named beforehand",
        "auc: utility minus random",
        "answer-only",
        "Comparisons",
        "Controls",
        "Utility lost",
        "utility in the paper",
        "All published numbers",
        "Chance to score above the mean of the pool",
        "Left out: candidates that one method likes",
        "Scores by method",
        "agrees with utility",
        "a against b",
    ):
        assert words in text, words
    pictures = re.findall(r"<figure>.*?</figure>", html, re.DOTALL)
    assert len(pictures) == 6
    assert all(re.search(r"<svg [^>]*>\n<title>\w", each) for each in pictures)
    assert "utility" in asyncio.run(write(run, None, format="md"))


def test_a_benchmark_whose_settings_are_torn(tmp_path: Path) -> None:
    run = benched(tmp_path / "bench")
    settings = (run / "run.json").read_text(encoding="utf-8")
    (run / "run.json").write_text(settings.replace('"settings"', '"sett"'), encoding="utf-8")
    assert "Nothing can be ranked" in text_of(run)


def test_answers_checked_by_another_version_are_not_mixed(run: Path, tmp_path: Path) -> None:
    copy = broken(run, tmp_path)
    with Store(copy) as store:
        store.update_settings(lambda old: {**old, "verifier": "0"})
    text = text_of(copy)
    assert "a result must not mix them" in text
    assert "--again" in text
    for file in (copy / "verdicts").iterdir():  # the same where only the verdicts tell
        file.write_text(file.read_text(encoding="utf-8").replace(f'"version":"{VERSION}"', '"version":"0"'))
    with Store(copy) as store:
        store.update_settings(lambda old: {**old, "verifier": VERSION})
    text = text_of(copy)
    assert "From problem valuation on nothing can be ranked" in text
    with pytest.raises(ConfigError, match="must not mix"):
        asyncio.run(write(copy, None, format="csv"))


# Small things


def test_durations() -> None:
    assert [duration(s) for s in (None, 0.4, 65, 7800)] == ["?", "0 s", "1 min 5 s", "2 h 10 min"]


def test_a_run_of_several_solvers_names_them(tmp_path: Path) -> None:
    rank([problem()], models=("fake/seed=1", "fake/seed=2"), output=tmp_path / "two", rollouts=2)
    assert re.search(r"rollout \d of fake/", text_of(tmp_path / "two"))


def test_a_text_row_that_belongs_to_another_run_is_passed_over(run: Path, tmp_path: Path) -> None:
    copy = broken(run, tmp_path)
    with Store(copy) as store:
        store.add(
            Row("other-0", Cell("other", None, None, "utility", "m", 0), "missing", rule="timeout: slow")
        )
    assert "timeout: slow" in text_of(copy)


def test_what_a_run_warned_of_and_its_cost_are_told(tmp_path: Path) -> None:
    twice = mathematical()
    twice = replace(twice, candidates=(*twice.candidates, replace(twice.candidates[0], id="again")))
    result = rank(
        [twice], model="fake/default", output=tmp_path / "run", rollouts=2, price=(1_000_000.0, 0.0)
    )
    text = text_of(tmp_path / "run")
    assert result.warnings
    assert all(warning[1:60] in text for warning in result.warnings)
    assert f" · ${result.usage.prompt:,}.00" in text
