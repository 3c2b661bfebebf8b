"""The report in a real browser, opened from disk: what works in it, what never happens in it, who can read it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright

from porism.report.load import Folder
from porism.report.page import Layout, write_html
from reports import apart, benched, hostile_run, made, mathematical, report
from samples import problem

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
# A browser that asks nobody for updates; --no-sandbox since CI is often root.
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
]
WIDTHS = (390, 820, 1360)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ci,
    pytest.mark.skipif(
        CHROMIUM is None, reason="no Chromium on this machine (Debian: apt-get install chromium)"
    ),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run of one problem."""
    return report(made(tmp_path_factory.mktemp("one") / "valuation", [mathematical()]))


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run of 14 problems, most of them packed, in lists of 5; in q3 no candidate helps."""
    run = tmp_path_factory.mktemp("many") / "many"
    made(run, [problem(f"q{i}", helpful=0 if i == 3 else 1, candidates=2 + i % 3) for i in range(14)])

    async def write() -> Path:
        file = run.with_suffix(".html")
        async with Folder(run) as folder:
            await write_html(folder, file, Layout(plain=30_000, rows=5))
        return file

    return apart(write())


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a benchmark."""
    return report(benched(tmp_path_factory.mktemp("bench") / "bench"))


@contextmanager
def opened(
    browser: Browser,
    file: Path,
    hash: str = "",
    *,
    width: int = 1360,
    dark: bool = False,
    script: bool = True,
) -> Iterator[Page]:
    """The page; at the end nothing was said on the console, nothing failed, nothing but the file was asked for."""
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=script,
    )
    said: list[str] = []
    asked: list[str] = []
    page = context.new_page()
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.goto(file.as_uri() + hash)
    yield page
    page.wait_for_timeout(50)
    assert not said
    assert set(asked) <= {file.as_uri(), file.as_uri() + hash}
    context.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["one", "many", "bench"])
def test_it_fits_every_width(browser: Browser, name: str, width: int, request: pytest.FixtureRequest) -> None:
    with opened(browser, request.getfixturevalue(name), width=width) as page:
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_it_is_read_without_javascript(browser: Browser, one: Path, many: Path) -> None:
    with opened(browser, one, script=False) as page:
        assert page.locator(".answer").is_visible()
        assert page.locator(".pair[open] .transcript").count() == 2
        assert page.locator(".card math").first.is_visible()
        assert not page.locator(".tools").is_visible()
    with opened(browser, many, script=False) as page:
        assert page.locator("#all tbody tr").count() == 14
        page.locator("#p0 summary").first.click()
        assert page.locator("#p0 table.heat").is_visible()
        page.locator("#p13 summary").first.click()
        assert "porism report RUN --problems q13" in page.locator("#p13 .notice").inner_text()


def test_formulas_are_drawn(browser: Browser, one: Path) -> None:
    with opened(browser, one) as page:
        box = page.locator(".card .display math").first.bounding_box()
        assert box
        assert box["height"] > 25  # a sum with its bound below it
        assert page.locator("code.latex").first.inner_text().startswith("\\broken")


def order(page: Page, table: str, column: int) -> list[str]:
    """The cells of a column, top to bottom."""
    return page.locator(f"{table} tbody tr:not(.fixed) > :nth-child({column})").all_inner_texts()


def test_tables_sort(browser: Browser, one: Path, many: Path) -> None:
    with opened(browser, many) as page:
        assert page.locator("#all table").count() == 3
        head = page.locator("#all th", has_text="Utility").first
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == "descending"
        down = [float(text) for text in order(page, "#all", 3)]
        assert down == sorted(down, reverse=True)
        head.get_by_role("button").press("Enter")
        assert head.get_attribute("aria-sort") == "ascending"
        assert [float(text) for text in order(page, "#all", 3)] == sorted(down)
        page.locator("#all th", has_text="Problem").last.get_by_role("button").click()
        assert order(page, "#all", 1) == [f"q{i}" for i in range(14)]
        assert head.get_attribute("aria-sort") is None
    with opened(browser, one) as page:
        page.locator(".ranking th", has_text="Rank").get_by_role("button").click()
        page.locator(".ranking th", has_text="Rank").get_by_role("button").click()
        assert order(page, ".ranking", 1)[-1] == "1"
        assert page.locator(".ranking tbody tr").last.get_attribute("class") == "fixed"


def test_problems_are_filtered(browser: Browser, many: Path) -> None:
    with opened(browser, many) as page:
        assert page.locator("#count").inner_text() == "14 of 14"
        page.get_by_label("Filter").fill("q12")
        assert page.locator("#all tbody tr:visible").count() == 1
        assert page.locator("details.problem:visible").count() == 1
        assert page.locator("#all thead:visible").count() == 1
        assert page.locator("#count").inner_text() == "1 of 14"
        page.get_by_label("Filter").fill("")
        assert page.locator("#all thead:visible").count() == 3
        assert page.locator("#count").inner_text() == "14 of 14"
        page.get_by_label("Show").select_option("ahead")
        ahead = page.locator("#all tbody tr:visible").count()
        page.get_by_label("Show").select_option("tied")
        tied = page.locator("#all tbody tr:visible").count()
        assert ahead + tied == 14
        assert ahead > tied > 0


def test_packed_problems_unfold(browser: Browser, many: Path) -> None:
    with opened(browser, many) as page:
        assert page.locator("#p13 table.heat").count() == 0
        page.locator("#p13 summary").first.click()
        page.locator("#p13 table.heat").wait_for()
        page.locator("#p13 .ranking th", has_text="Lift").get_by_role("button").click()
        assert page.locator("#p13 .ranking th", has_text="Lift").get_attribute("aria-sort") == "descending"
        page.get_by_role("button", name="Unfold all").click()
        page.locator("#p12 table.heat").wait_for()
        assert page.locator("details.problem table.heat").count() == 14
        page.get_by_role("button", name="Unfold all").click()
        assert page.locator("details.problem[open]").count() == 0


def test_a_link_to_a_packed_place_leads_there(browser: Browser, many: Path) -> None:
    with opened(browser, many, "#p12-evidence") as page:
        expect(page.locator("#p12-evidence")).to_be_in_viewport()
        page.locator("#all tbody a", has_text="q11").click()
        page.locator("#p11 table.heat").wait_for()


def test_evidence_of_a_pair(browser: Browser, one: Path) -> None:
    with opened(browser, one) as page:
        first = page.locator(".pair").first
        left, right = first.locator(".side").all()
        assert "correct" in left.locator(".outcome").inner_text()
        assert "wrong" in right.locator(".outcome").inner_text()
        assert "rule" in right.locator(".outcome").inner_text()
        assert first.locator(".gold").inner_text().startswith("Known answer")
        gold = first.locator(".gold .value").inner_text()
        assert left.locator(".outcome .value").inner_text() == gold
        boxes = [side.bounding_box() for side in (left, right)]
        assert boxes[0]
        assert boxes[1]
        assert boxes[0]["y"] == boxes[1]["y"]
        assert left.locator(".step.final .boxed").is_visible()
        right.get_by_role("link", name="final answer").click()
        assert right.locator(".step.final:target").count() == 1
        page.locator(".pair summary").nth(1).click()
        assert page.locator(".pair[open]").count() == 2
        assert page.locator(".pair .versus").last.inner_text().endswith("no example")


def brightness(page: Page, selector: str) -> float:
    """Of the background, from 0 to 255."""
    color = page.locator(selector).first.evaluate("(e) => getComputedStyle(e).backgroundColor")
    return sum(float(part) for part in color[color.index("(") + 1 : -1].split(",")[:3]) / 3


def test_dark_and_light(browser: Browser, one: Path) -> None:
    with opened(browser, one) as page:
        assert brightness(page, "body") > 200
        button = page.get_by_role("button", name="Dark")
        button.click()
        assert button.get_attribute("aria-pressed") == "true"
        assert brightness(page, "body") < 50
        button.click()
        assert brightness(page, "body") > 200
    with opened(browser, one, dark=True) as page:
        assert brightness(page, "body") < 50
        page.get_by_role("button", name="Dark").click()
        assert brightness(page, "body") > 200


def test_it_prints(browser: Browser, one: Path) -> None:
    with opened(browser, one, dark=True) as page:
        page.emulate_media(media="print")
        assert brightness(page, ".side") > 200
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("details:not([open])").count() == 0
        assert len(page.pdf()) > 20_000


def test_the_keyboard_is_enough(browser: Browser, one: Path) -> None:
    with opened(browser, one) as page:
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.className") == "skip"
        page.keyboard.press("Enter")
        for _ in range(60):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.matches('.pair:not([open]) summary')"):
                break
        page.keyboard.press("Enter")
        assert page.locator(".pair[open]").count() == 2


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("name", ["one", "many", "bench"])
def test_it_is_accessible(browser: Browser, name: str, dark: bool, request: pytest.FixtureRequest) -> None:
    with opened(browser, request.getfixturevalue(name), dark=dark) as page:
        if name == "many":
            page.get_by_role("button", name="Unfold all").click()
            page.locator("#p13 table.heat").wait_for()
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [
        f"{v['id']}: {v['help']}: {[node['html'][:150] for node in v['nodes'][:3]]}"
        for v in found
        if v["impact"] in ("serious", "critical", "moderate")
    ]
    assert not serious


def test_shades_can_be_told_apart_and_read(browser: Browser, one: Path) -> None:
    """Every step of the heat map is lighter or darker than the last, for any eye, and its figure is readable."""
    for dark in (False, True):
        with opened(browser, one, dark=dark) as page:
            shades = [
                page.evaluate(
                    """(i) => {
                        const cell = document.querySelector('.heat td');
                        cell.className = 'h' + i;
                        const luminance = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number)
                            .map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
                            .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
                        const style = getComputedStyle(cell);
                        return [luminance(style.backgroundColor), luminance(style.color)];
                    }""",
                    i,
                )
                for i in range(11)
            ]
        grounds = [ground for ground, _ in shades]
        assert grounds == sorted(grounds, reverse=not dark)
        for ground, ink in shades:
            high, low = max(ground, ink), min(ground, ink)
            assert (high + 0.05) / (low + 0.05) >= 4.5


def test_hostile_texts_run_nothing(browser: Browser, tmp_path: Path) -> None:
    file = report(hostile_run(tmp_path / "run"))
    foreign = "img, iframe, object, embed, base, link, script[src], a[href]:not([href^='#'])"
    with opened(browser, file) as page:
        page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
        page.wait_for_timeout(500)
        assert page.evaluate("window.pwned") is None
        assert page.title() == "run – porism report"
        assert page.locator(foreign).count() == 0
        assert page.locator("[onclick], [onload], [onerror], [onfocus], [ontoggle], [style]").count() == 0
        assert page.locator("h1").is_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    with opened(browser, file, script=False) as page:
        assert page.locator(".answer").is_visible()


def test_an_open_page_follows_its_run(browser: Browser, tmp_path: Path) -> None:
    made(tmp_path / "run", [mathematical()], rollouts=2)
    with serving(tmp_path / "run") as address:
        context = browser.new_context()
        page = context.new_page()
        said: list[str] = []
        page.on("console", lambda message: said.append(message.text))
        page.goto(address)
        page.get_by_role("button", name="Dark").click()
        page.locator(".pair summary").nth(1).click()
        assert "2/2" in page.locator(".heat").inner_text()
        made(tmp_path / "run", [mathematical()], rollouts=4)
        page.locator(".heat td", has_text="/4").first.wait_for(timeout=60_000)
        assert page.locator(".pair[open]").count() == 2
        assert brightness(page, "body") < 50
        assert not said
        context.close()


@contextmanager
def serving(run: Path) -> Iterator[str]:
    """A viewer of the run in a process of its own; gives its address."""
    command = [sys.executable, "-m", "porism", "view", str(run)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.communicate()
