"""The page *Live* in use: mouse, touch, keys and links; without a server; with reduced motion."""

import itertools
import re
import time

import pytest
from playwright.sync_api import FloatRect, Locator, Page, expect

from linearity_lab.dashboard.live import HOME_TOUR, source
from linearity_lab.dashboard.live.settings import CHOICES, LiveSettings
from linearity_lab.site import write_site
from tests.browser.conftest import Fingers, new_page, phone, run_button
from tests.browser.test_accessibility import press_tab_until

pytestmark = [pytest.mark.browser, pytest.mark.slow]
# Positions of the points, in pixels of the window.
PLACES = """each => {
  const canvas = each.querySelector('canvas'), box = canvas.getBoundingClientRect();
  const { plot, hand } = each.live;
  return hand.points().map(([x, y]) => [box.left + plot.x(x), box.top + plot.y(y)]);
}"""


def live(page: Page) -> Locator:
    """The component, once it has drawn."""
    found = page.locator(".live")
    found.wait_for()
    until(found, "each => each.live.frames > 0")
    return found


def until(component: Locator, condition: str, timeout_s: float = 60) -> None:
    deadline = time.monotonic() + timeout_s
    while not component.evaluate(condition):
        assert time.monotonic() < deadline, f"never true: {condition}"
        time.sleep(0.05)


def points(component: Locator) -> list[list[float]]:
    return component.evaluate("each => each.live.hand.points()")


def test_link_trains_and_catapults_without_console_messages(open_page):
    page = open_page("/_stcore/health", ready=False)
    shown = []
    page.on(
        "console",
        lambda message: shown.append((message.type, message.text, message.location.get("url", ""))),
    )
    page.on("pageerror", lambda error: shown.append(("error", str(error), "")))
    page.goto(re.sub(r"/_stcore.*", "/live?width=256&rate=3&activation=relu&seed=2", page.url))
    begun = live(page).evaluate(
        "({ live: { begun } }) => [begun.width, begun.rate, begun.activation]"
    )
    assert begun == [256, 3, "relu"]
    expect(page.get_by_role("slider", name="Width m")).to_have_attribute("aria-valuetext", "256")
    expect(page.locator(".verdict")).to_contain_text("recovers at c = ")
    # Streamlit requests its URLs below every page but the root, and reconnects to a fresh server.
    others = [
        each
        for each in shown
        if each[0] in ("error", "warning") and "/_stcore/" not in each[1] + each[2]
    ]
    assert others == []


@pytest.mark.long
def test_parts_explain_themselves_and_points_are_edited_by_mouse(open_page):
    page = open_page("/live?width=8")
    component = live(page)
    for name, part in source.words()["parts"].items():
        page.locator(f".{name} canvas").hover()
        expect(page.locator(".note")).to_have_text(part["text"])
    page.mouse.move(0, 0)
    page.get_by_role("button", name="Losses").focus()
    expect(page.locator(".note")).to_have_text(source.words()["parts"]["losses"]["text"])

    before = points(component)
    x, y = component.evaluate(PLACES)[3]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 5, y - 60, steps=4)
    until(component, "each => each.live.settings.target === 'own'")
    assert "points=" not in page.url, "the server receives points after the drag"
    page.mouse.up()
    expect(page).to_have_url(re.compile("points="))
    moved = points(component)
    assert moved[3][1] > before[3][1] + 0.2
    assert moved[:3] == [[round(a, 2), round(b, 2)] for a, b in before[:3]]

    box = page.locator(".functions canvas").bounding_box()
    page.mouse.click(box["x"] + 0.52 * box["width"], box["y"] + 0.9 * box["height"])
    assert len(points(component)) == len(before) + 1
    x, y = component.evaluate(PLACES)[0]
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(box["x"] + 100, box["y"] - 60, steps=3)
    page.mouse.up()
    assert len(points(component)) == len(before)
    x, y = component.evaluate(PLACES)[0]
    page.mouse.dblclick(x, y)
    kept = points(component)
    assert len(kept) == len(before) - 1
    expect(page).to_have_url(re.compile(rf"points={kept[0][0]:g}%3A"))
    page.reload()
    assert points(live(page)) == kept


def add_a_point(page: Page, component: Locator) -> FloatRect:
    """Tap on the background until a point stands there; return the canvas in pixels of the window.

    The answer to the drag before may still move the page, so a tap can land outside.
    """
    added = len(points(component)) + 1
    deadline = time.monotonic() + 60
    while True:
        box = page.locator(".functions canvas").bounding_box()
        assert box is not None
        page.touchscreen.tap(box["x"] + 0.53 * box["width"], box["y"] + 0.85 * box["height"])
        page.wait_for_timeout(1_000)
        if len(points(component)) == added:
            return box
        assert time.monotonic() < deadline, "no tap added a point"


@pytest.mark.long
def test_points_are_dragged_added_and_removed_by_a_finger(browser, dashboard_url):
    page = phone(browser, f"{dashboard_url}/live?width=8")
    component, finger = live(page), Fingers(page)
    page.locator(".functions canvas").scroll_into_view_if_needed()
    before = points(component)
    x, y = component.evaluate(PLACES)[4]
    finger.drag((x, y), (x, y - 50))
    until(component, f"each => each.live.hand.points()[4][1] > {before[4][1] + 0.2}")
    scrolled = page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
    box = add_a_point(page, component)
    x, y = component.evaluate(PLACES)[5]
    finger.drag((x, y), (x, box["y"] + box["height"] + 60))
    until(component, f"each => each.live.hand.points().length === {len(before)}")
    assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == scrolled
    page.context.close()


def test_the_keyboard_alone_suffices(open_page):
    page = open_page("/live?width=8")
    component = live(page)
    # Not the one of the tray of runs.
    hosts = "[...document.querySelectorAll('[data-testid=stBidiComponentIsolated]')]"
    inside = (
        f"{hosts}.map(host => host.shadowRoot).find(root => "
        "root.querySelector('.live'))?.activeElement"
    )
    press_tab_until(page, f"{inside}?.dataset.do === 'play'")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    until(component, "each => !each.live.player.busy")  # the steps of the last frame
    held = component.evaluate("each => each.live.now.time")
    press_tab_until(page, f"{inside}?.dataset.do === 'step'")
    page.keyboard.press("Enter")
    until(component, f"each => each.live.now.time === {held + 1}", 10)
    # Two during the first.
    component.evaluate("each => { for (let k = 0; k < 3; k++) each.live.press('step'); }")
    until(component, f"each => each.live.now.time === {held + 4}", 10)
    for name, key, shown in (
        ("width", "ArrowRight", "=9"),
        ("rate", "End", "=4"),
        ("output", "ArrowDown", "=swish"),
    ):
        press_tab_until(page, f"{inside}?.id === 'live-{name}'")
        page.keyboard.press(key)
        expect(page).to_have_url(re.compile(name + shown))
    press_tab_until(page, f"{inside}?.tagName === 'CANVAS'")
    before = points(component)
    for key in ("ArrowRight", "ArrowUp", "ArrowUp", "Shift+ArrowRight", "Enter"):
        page.keyboard.press(key)
    after = points(component)
    assert len(after) == len(before) + 1
    assert after[1] == pytest.approx([before[1][0] + 0.05, before[1][1] + 0.1], abs=0.006)
    page.keyboard.press("Delete")
    assert len(points(component)) == len(before)


def test_error_bars_are_computed_on_the_kernel_page(open_page):
    page = open_page("/live?width=40&output=swish&layers=2&bottleneck=3")
    live(page)
    page.get_by_role("button", name="Compute this with error bars").click()
    expect(page).to_have_url(re.compile(r"/kernel_change\?.*widths=10%2C40%2C160%2C640.*job="))
    page.locator('[class*="-run_place"]').get_by_role("button", name="Stop").click()
    expect(run_button(page)).to_be_enabled()


def test_play_waits_for_those_without_motion_and_goes_back(browser, dashboard_url):
    page = new_page(browser, reduced_motion="reduce")
    page.goto(f"{dashboard_url}/live?width=16&speed=1")
    component = live(page)
    page.wait_for_timeout(500)
    assert component.evaluate("each => each.live.now.time") == 0
    expect(page.locator(".verdict")).to_contain_text("before training")
    page.get_by_role("button", name="Play", exact=True).click()
    until(component, "each => each.live.now.time > 10")
    page.get_by_label("Training so far").fill("5")
    assert component.evaluate("e => [e.live.now.time, e.live.playing]") == [5, False]
    newest = component.evaluate("each => each.live.newest.time")
    page.get_by_role("button", name="Play", exact=True).click()
    until(component, f"each => each.live.now.time > {newest}")
    page.context.close()


def test_page_without_a_server_trains_with_settings_in_its_url(browser, tmp_path):
    next(write_site(tmp_path, lambda path, text: path.write_text(text, encoding="utf-8")))
    page = browser.new_page()
    asked, errors = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(f"{(tmp_path / 'live.html').as_uri()}?width=16&output=tanh")
    component = live(page)
    until(component, "each => each.live.now.time > 20")
    assert component.evaluate("each => [each.live.begun.width, each.live.begun.output]") == [
        16,
        "tanh",
    ]
    for target, output in itertools.product(CHOICES["target"], CHOICES["output"]):
        component.evaluate(
            "(each, part) => each.live.choose(part, false)", {"target": target, "output": output}
        )
        drawn = LiveSettings(target=target, output=output).learned()
        assert points(component) == [pytest.approx(pair, abs=1e-12) for pair in drawn], (
            "as handed to Kernel"
        )
    component.evaluate("each => each.live.choose({ target: 'zigzag', output: 'tanh' }, false)")
    page.get_by_label("Target").select_option("step")
    assert page.url.endswith("?width=16&output=tanh&target=step")
    assert errors == []
    assert [url for url in asked if not url.startswith(("file:", "blob:"))] == []
    page.close()


OUT_OF_SIGHT_FIRST = """const Native = IntersectionObserver;
IntersectionObserver = class extends Native {
  constructor(act, options) {
    const out = (entry) => Object.create(entry, { isIntersecting: { value: false } });
    super((seen, self) => act([out(seen[0]), ...seen], self), options);
  }
};"""


def test_live_draws_after_leaving_and_returning(open_page):
    page = open_page("/live", alone=True)  # a separate window, since the script is never removed
    page.add_init_script(OUT_OF_SIGHT_FIRST)
    page.reload()
    assert live(page).evaluate("each => each.live.visible")


@pytest.mark.long
def test_tour_and_slider_set_the_network_and_the_url(open_page):
    page = open_page("/live")
    component = live(page)
    page.get_by_role("button", name="Start the guided tour").click()
    set_by_tour = (
        "e => { const s = e.live.settings; return [s.width, s.output, s.rate, s.bottleneck] }"
    )
    steps = [
        [4, "linear", 1, 0],
        [64, "linear", 1, 0],
        [4096, "linear", 1, 0],
        [1024, "swish", 1, 0],
    ]
    steps += [[1024, "linear", 2.5, 0], [1024, "linear", 1, 1]]
    for at, expected in enumerate(steps, 1):
        assert component.evaluate(set_by_tour) == expected
        expect(page).to_have_url(re.compile(rf"tour={at}(&|$)"))
        if at < len(steps):
            page.get_by_role("button", name="Next").click()
    expect(page.locator('[data-do="next"]')).to_be_hidden()
    page.get_by_role("button", name="End the tour").click()
    expect(page).not_to_have_url(re.compile("tour="))

    box = page.get_by_role("slider", name="Width m").bounding_box()
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + box["height"] / 2)
    page.mouse.down()
    seen = set()
    for share in (0.5, 0.7, 0.9):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        until(component, "each => each.live.begun.width === each.live.settings.width")
        seen.add(
            component.evaluate(
                "each => each.live.begun.neurons?.length ?? each.live.now.neurons.length / 2"
            )
        )
    assert len(seen) == 3, "the slider redraws while dragged"
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"width=\d{4}"))


def test_the_verdict_needs_both_function_and_kernel(browser):
    """Equal functions with a changed kernel are not called different, nor the reverse."""
    page = browser.new_page()
    script = source.module().replace(
        "export default function live", "export { verdict }; export default function live"
    )
    found = page.evaluate(
        """async ([text, states]) => {
          const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
          const { verdict } = await import(address);
          const begun = { width: 64, rate: 1, output: "linear", bottleneck: 0, grid: [-3, -1, 1, 3],
            points: [[-1.2, 0], [1.2, 0]] };
          const common = { time: 9, rate: 1, loss: 1, linearLoss: 1, curve: [0, 0, 1, 1] };
          const verdicts = states.map(([gap, change, beyond]) =>
            verdict(
              begun, { ...common, linearCurve: [0, 0, 1 + gap, 1 + beyond], change }, common));
          return [verdicts.map(({ parts }) => parts.join(" ")), verdicts.at(-1).numbers.place];
        }""",
        [
            script,
            [[0.01, 0.01, 0], [0.01, 0.01, 2], [0.01, 0.44, 0], [0.05, 0.01, 0], [0.3, 0.01, 2]],
        ],
    )
    assert found == [["same", "same beyond", "moved", "near", "different"], "1"]
    page.close()


def test_a_network_recovers_only_below_two(browser):
    page = browser.new_page()
    script = source.module().replace(
        "export default function live", "export { verdict }; export default function live"
    )
    found = page.evaluate(
        """async ([text, states]) => {
          const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
          const { verdict } = await import(address);
          const begun = { width: 64, rate: 2.5, output: "linear", bottleneck: 0, grid: [-1, 1],
            points: [[0, 0]] };
          const curves = { curve: [0, 1], linearCurve: [0, 9], linearDiverged: true, time: 9,
            change: 1 };
          return states.map(([rate, loss]) =>
            verdict(begun, { ...curves, rate, loss }, { loss: 1 }).name);
        }""",
        [script, [[1.9, 0.5], [2.01, 0.5], [2.01, 1.5]]],
    )
    assert found == ["caught", "returning", "catapult"]
    page.close()


@pytest.mark.long
def test_home_draws_both_lines_and_agrees_with_training(open_page):
    page = open_page("/")
    home = page.locator(".live[data-form=home]")
    home.wait_for()
    until(home, "each => each.home.sides.every(side => side.points.has(1024))", 120)
    linear, swish = (
        dict(side)
        for side in home.evaluate("each => each.home.sides.map(side => [...side.points])")
    )
    assert list(linear)[:5] == list(swish)[:5] == list(HOME_TOUR[:5])
    assert linear[1024] < linear[4] / 20
    assert swish[1024] > 0.3
    # On an axis of eight positions a doubling: width 16.
    page.get_by_role("slider", name="Width m").fill("16")
    again = page.evaluate(
        """async ([text, starts]) => {
          const address = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
          const { Training } = await import(address);
          return starts.map((start) => {
            const training = new Training(start);
            while (training.time < 200) training.step();
            return training.state().change;
          });
        }""",
        [source.model_module(), home.evaluate("each => each.home.sides.map(side => side.asked)")],
    )
    assert again == [pytest.approx(linear[16], rel=1e-9), pytest.approx(swish[16], rel=1e-9)]
    assert home.evaluate("each => each.home.tour.length") == 0, (
        "the visitor's own width ends the tour"
    )


def test_second_task_shows_whether_both_add(open_page):
    page = open_page("/live?width=1024&seed=2")
    component = live(page)
    until(component, "each => each.live.now.time > 100")
    page.get_by_role("button", name="Second task").click()
    until(component, "each => each.live.added")
    expect(page.locator(".verdict")).to_contain_text("Width 1,024: two tasks")
    legend = page.locator(".legend:visible")
    expect(legend).to_contain_text("after task 1after task 2 (rings)sum of both changes")
    expect(legend).to_contain_text("E is the distance of the last two")
    expect(page.get_by_role("button", name="Two tasks and their sum")).to_be_visible()
    error = component.evaluate("each => each.live.added.error")
    assert 0 < error < 0.2
    # The picture is high enough for the sum, which leaves the range of each task.
    assert component.evaluate(
        "each => { const { added, plot } = each.live, { top, bottom } = plot.box;"
        "return added.summed.every((value) => plot.y(value) >= top && plot.y(value) <= bottom); }"
    )
    assert component.evaluate("each => each.live.added.time === each.live.now.time")
    page.get_by_role("button", name="One step").click()
    until(component, "each => !each.live.added")
    expect(page.locator(".verdict")).not_to_contain_text("tasks")
    expect(legend).to_contain_text("linear model")
    expect(page.get_by_role("button", name="Network vs. linear model")).to_be_visible()
