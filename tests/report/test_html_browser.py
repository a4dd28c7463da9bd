"""The report in a real browser: read by keyboard, filtered by address, hurt by nothing in it."""

import itertools
import shutil
import time

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from clash.cli.app import run
from clash.store import layout
from clash.store.folder import RunFolder
from review.browser import Beacon, chrome, hostile
from review.runs import judged, plain_prompts

ATTACKED = "attacked"


@pytest.fixture(scope="module")
def beacon():
    beacon_server = Beacon()
    yield beacon_server
    beacon_server.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory, beacon):
    evil = hostile(beacon.url)
    attack = {
        "id": ATTACKED,
        "prompt": evil,
        "tags": ["evil"],
        "responses": {"north": evil, "south": "A short and honest answer."},
        "label": "south",
    }
    return judged(tmp_path_factory.mktemp("html"), [*plain_prompts(60), attack])


@pytest.fixture(scope="module")
def driver():
    with chrome() as browser:
        yield browser


@pytest.fixture
def browser(driver):
    driver.get("about:blank")
    driver.get_log("browser")
    return driver


def open_page(browser, folder, hash_=""):
    browser.get((folder.path / layout.REPORT_HTML).as_uri() + hash_)
    WebDriverWait(browser, 100).until(
        lambda b: b.execute_script("return document.body.dataset.ready === 'yes'")
    )


def bodies(browser):
    return browser.find_elements(By.CSS_SELECTOR, ".item .body h4")


def wait_for(browser, truth):
    WebDriverWait(browser, 100).until(lambda _: truth())


def keys(browser, *key_names):
    for key in key_names:
        browser.switch_to.active_element.send_keys(key)


def ids(browser):
    return [
        record.get_attribute("data-id") for record in browser.find_elements(By.CLASS_NAME, "item")
    ]


def test_it_opens_from_disk_without_a_complaint(browser, folder):
    open_page(browser, folder)
    assert browser.get_log("browser") == []
    assert browser.find_element(By.ID, "count").text == "5 of 61 prompts"
    choose(browser, "all")
    assert len(ids(browser)) == 50
    browser.find_element(By.ID, "more").click()
    assert len(ids(browser)) == 61


def test_an_item_is_reached_and_read_by_keyboard_alone(browser, folder):
    open_page(browser, folder, "#show=all")
    browser.find_element(By.TAG_NAME, "body").send_keys("j")
    keys(browser, "j", "j", "k", Keys.ENTER)
    wait_for(browser, lambda: bodies(browser))
    titles = [title.text for title in bodies(browser)]
    assert {"north", "south", "longest", "dense"} <= {title.partition(" ·")[0] for title in titles}
    assert "item=q1" in browser.current_url
    scores = browser.find_element(By.XPATH, "//summary[starts-with(., 'How each judge')]")
    scores.send_keys(Keys.ENTER)
    body = browser.find_element(By.CSS_SELECTOR, ".item .body").text
    assert body.count("It saw A0 =") == 4
    for part in ("Criteria", "Verdict", "Score, 1 to 5"):
        assert part in body
    raw = browser.find_element(By.XPATH, "//summary[starts-with(., 'Raw calls')]")
    raw.send_keys(Keys.ENTER)
    wait_for(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".body pre.raw")) == 4)
    keys(browser, "/")
    assert browser.switch_to.active_element.get_attribute("name") == "q"


def choose(browser, problem):
    browser.execute_script(f"document.querySelector('[name=show][value={problem}]').click()")


def test_filters_are_in_the_address_and_come_back_from_it(browser, folder):
    open_page(browser, folder)
    first = ids(browser)
    choose(browser, "wrong")
    wrong = ids(browser)
    assert wrong
    assert "show=wrong" in browser.current_url
    address = browser.current_url
    browser.get("about:blank")
    browser.get(address)
    wait_for(browser, lambda: browser.find_element(By.ID, "count").text != "")
    assert ids(browser) == wrong
    choose(browser, "telling")
    assert ids(browser) == first
    assert "#" not in browser.current_url


@pytest.mark.parametrize(
    ("address", "left"),
    [
        ("#tag=even", 30),
        ("#q=q59", 1),
        ("#tag=evil&winner=south", None),
        ("#q=no+such+prompt", 0),
        ("#sort=unsure", 61),
    ],
)
def test_each_filter_leaves_what_it_says(browser, folder, address, left):
    open_page(browser, folder, address)
    verdicts = {v.item_id: v for v in folder.verdicts()}
    count = int(browser.find_element(By.ID, "count").text.split()[0])
    if left is None:
        left = int(verdicts[ATTACKED].winner == "south")
    assert count == left
    if "unsure" in address:
        sure = [verdicts[item].confidence for item in ids(browser)]
        assert sure == sorted(sure)


def test_split_leaves_exactly_the_items_on_which_the_judges_differ(browser, folder):
    open_page(browser, folder, "#show=split")
    assert ids(browser) == [v.item_id for v in folder.verdicts() if not v.unanimous][:50]


def test_a_hostile_response_does_nothing(browser, folder, beacon):
    open_page(browser, folder, f"#item={ATTACKED}")
    wait_for(browser, lambda: bodies(browser))
    raw = browser.find_element(By.XPATH, "//summary[starts-with(., 'Raw calls')]")
    raw.click()
    wait_for(browser, lambda: browser.find_elements(By.CSS_SELECTOR, ".body pre.raw"))
    time.sleep(0.3)  # what could be sent would be sent by now
    assert browser.execute_script("return window.pwned") is None
    assert beacon.seen == []
    assert browser.get_log("browser") == []
    inside = ".item img, .item iframe, .item style, .item link, .item button, .item h1, .item a"
    assert browser.find_elements(By.CSS_SELECTOR, inside) == []
    element = browser.find_element(By.CSS_SELECTOR, ".response pre")
    assert "<script>window.pwned = 1</script>" in element.text
    assert "U+202E" in element.text
    assert "\u202e" not in browser.execute_script("return document.body.innerText")


def test_a_line_of_200_kb_stays_in_its_box(browser, folder):
    open_page(browser, folder, f"#item={ATTACKED}")
    wait_for(browser, lambda: bodies(browser))
    wide = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    scroll, client = browser.execute_script(wide)
    assert scroll <= client
    for box in browser.find_elements(By.CSS_SELECTOR, ".body pre"):
        assert box.size["height"] < 600


def test_the_script_could_not_make_markup_of_a_string_if_it_tried(browser, folder):
    open_page(browser, folder)
    refused_script_result = browser.execute_script(
        """
        const tries = [
          () => document.body.insertAdjacentHTML("beforeend", "<b>x</b>"),
          () => { document.body.innerHTML = "<b>x</b>"; },
          () => document.write("<b>x</b>"),
          () => new DOMParser().parseFromString("<b>x</b>", "text/html"),
        ];
        return tries.map((one) => { try { one(); return "done"; } catch (e) { return e.name; } });
        """
    )
    assert refused_script_result == ["TypeError"] * 4


def test_what_got_past_the_escaping_would_still_be_stopped_by_the_policy(browser, folder, beacon):
    beacon.seen.clear()
    open_page(browser, folder)
    browser.execute_script(
        f"""
        const add = (tag, values) => {{
          const made = document.createElement(tag);
          for (const [name, value] of Object.entries(values)) made.setAttribute(name, value);
          document.body.append(made);
          return made;
        }};
        add("img", {{src: "{beacon.url}/x"}});
        add("iframe", {{src: "{beacon.url}/f"}});
        add("div", {{style: "background:url({beacon.url}/css)"}}).textContent = "x";
        add("link", {{rel: "stylesheet", href: "{beacon.url}/link"}});
        add("form", {{action: "{beacon.url}/post", method: "post"}}).submit();
        fetch("{beacon.url}/fetch").catch(() => 0);
        new Image().src = "{beacon.url}/image";
        try {{ add("script", {{src: "{beacon.url}/script"}}); }} catch (e) {{}}
        try {{ add("img", {{src: "x", onerror: "window.pwned=1"}}); }} catch (e) {{}}
        """
    )
    time.sleep(0.4)
    assert browser.execute_script("return window.pwned") is None
    assert beacon.seen == []
    assert browser.get_log("browser") != []  # the refusals


def test_pictures_and_controls_have_names_for_a_screen_reader(browser, folder):
    open_page(browser, folder)
    for chart in browser.find_elements(By.CSS_SELECTOR, "ol.chart, .wide"):
        assert chart.accessible_name or not chart.is_displayed()
    for field in browser.find_elements(By.CSS_SELECTOR, "#filters input, #filters select"):
        assert field.accessible_name
    levels = [int(h.tag_name[1]) for h in browser.find_elements(By.CSS_SELECTOR, "h1, h2, h3, h4")]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_no_width_makes_the_page_scroll_sideways(browser, folder, width):
    size = {"width": width, "height": 844, "deviceScaleFactor": 1, "mobile": width < 800}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        open_page(browser, folder, f"#item={ATTACKED}")
        wait_for(browser, lambda: bodies(browser))
        browser.execute_script(
            "for (const d of document.querySelectorAll('details')) d.open = true"
        )
        wide = """return [...document.querySelectorAll("main *, header *, footer *")]
            .filter((e) => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".wide, svg, pre, .unseen"))
            .map((e) => e.tagName + "." + e.className).slice(0, 5)"""
        assert browser.execute_script(wide) == []
        root = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert browser.execute_script(root) <= 0
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_what_matters_is_above_the_fold_of_a_laptop(browser, folder):
    size = {"width": 1280, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        open_page(browser, folder)
        figures = browser.execute_script(
            "return document.querySelector('.figures').getBoundingClientRect().bottom"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert figures <= 800


def test_a_term_explains_itself_by_keyboard_and_escape_closes_it(browser, folder):
    open_page(browser, folder)
    term = browser.find_element(By.CSS_SELECTOR, ".answer .term")
    browser.execute_script("arguments[0].focus()", term)
    tip = browser.find_element(By.CLASS_NAME, "tip")
    assert tip.is_displayed()
    assert tip.text == term.get_attribute("aria-description")
    keys(browser, Keys.ESCAPE)
    assert not tip.is_displayed()
    keys(browser, Keys.TAB)
    assert browser.get_log("browser") == []


def test_the_page_has_one_of_each_landmark_and_every_id_once(browser, folder):
    open_page(browser, folder)
    count = "return document.querySelectorAll(arguments[0]).length"
    for landmark in ("main", "body > header", "body > footer", "h1", "nav[aria-label]"):
        assert browser.execute_script(count, landmark) == 1
    names = "return [...document.querySelectorAll('[id]')].map((e) => e.id)"
    ids_of_page = browser.execute_script(names)
    assert len(set(ids_of_page)) == len(ids_of_page)
    dangling = """return [...document.querySelectorAll("a[href^='#'], [aria-labelledby]")]
        .map((e) => e.getAttribute("aria-labelledby") || e.getAttribute("href").slice(1))
        .filter((id) => !document.getElementById(id))"""
    assert browser.execute_script(dangling) == []
    unnamed_query = """return [...document.querySelectorAll("section, button, summary, [role=region]")]
        .filter((e) => !(e.getAttribute("aria-label") || e.getAttribute("aria-labelledby") || e.textContent.trim()))
        .length"""
    assert browser.execute_script(unnamed_query) == 0
    assert browser.find_element(By.TAG_NAME, "html").get_attribute("lang") == "en"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_has_the_contrast_of_wcag_aa_in_light_and_dark(browser, folder, theme):
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    open_page(browser, folder, "#item=q3")
    wait_for(browser, lambda: bodies(browser))
    poor = browser.execute_script(
        """
        const light = (c) => { const v = c.match(/[\\d.]+/g).slice(0, 3).map((x) => x / 255)
          .map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
          return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
        const ground = (e) => { for (; e; e = e.parentElement) {
          const c = getComputedStyle(e).backgroundColor;
          if (!/, 0\\)$|transparent/.test(c)) return c; } return "rgb(255, 255, 255)"; };
        const poor = [];
        for (const e of document.querySelectorAll("h1, h2, h3, p, td, th, dt, dd, summary span, a, label")) {
          if (!e.textContent.trim() || !e.checkVisibility()) continue;
          const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
          const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (ratio < 4.5) poor.push([e.className, e.textContent.slice(0, 40), ratio]);
        }
        return poor;
        """
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert poor == []


def test_it_prints_what_is_open_without_the_controls(browser, folder):
    open_page(browser, folder, "#item=q3")
    wait_for(browser, lambda: bodies(browser))
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    is_displayed = {name: browser.find_element(By.CSS_SELECTOR, name).is_displayed()
             for name in ("nav", "#filters", "h1", ".item .body")}  # fmt: skip
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert is_displayed == {"nav": False, "#filters": False, "h1": True, ".item .body": True}


# -- a report with a page beside it --


@pytest.fixture
def large(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("clash.report.html.report_page.ROOM", 0)
    shutil.copytree(folder.path, tmp_path / "large")
    assert run(["report", str(tmp_path / "large")]) == 0
    return RunFolder(tmp_path / "large")


def answer(browser):
    """What an opened item says once it says something."""
    body = (By.CSS_SELECTOR, ".item .body")
    wait_for(browser, lambda: "unpacking" not in browser.find_element(*body).text)
    return browser.find_element(*body).text


def test_items_and_raw_calls_of_a_large_report_are_read_from_the_page_beside_it(browser, large):
    open_page(browser, large)
    assert (
        browser.find_elements(By.TAG_NAME, "iframe") == []
    )  # nothing is loaded before it is asked
    browser.find_element(By.CSS_SELECTOR, ".item summary").click()
    assert "Red, because it is warm." in answer(browser)
    browser.find_element(By.XPATH, "//summary[starts-with(., 'Raw calls')]").click()
    wait_for(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".body pre.raw")) == 4)
    frame = browser.find_element(By.TAG_NAME, "iframe")
    assert frame.get_attribute("sandbox") == "allow-scripts"
    assert browser.get_log("browser") == []


def test_a_hostile_response_from_the_page_beside_it_does_nothing(browser, large, beacon):
    beacon.seen.clear()
    open_page(browser, large, f"#item={ATTACKED}")
    wait_for(browser, lambda: bodies(browser))
    time.sleep(0.3)
    assert browser.execute_script("return window.pwned") is None
    assert beacon.seen == []
    assert browser.get_log("browser") == []


def test_another_page_in_its_place_is_refused_and_cannot_touch_the_report(browser, large, beacon):
    beacon.seen.clear()
    (large.path / layout.REPORT_DATA).write_text(
        f"""<script>
        try {{ parent.document.body.textContent = "pwned"; }} catch (e) {{}}
        fetch("{beacon.url}/fetch").catch(() => 0);
        onmessage = (e) => parent.postMessage({{name: e.data.name, text: "eJyLrlbKU7JSUNJRyk4EUsm1sQA"}}, "*");
        </script>"""
    )
    open_page(browser, large)
    browser.find_element(By.CSS_SELECTOR, ".item summary").click()
    assert "is not the one that this page was written with" in answer(browser)
    assert browser.find_element(By.ID, "count").text == "5 of 61 prompts"
    assert "pwned" not in browser.find_element(By.TAG_NAME, "body").text


def test_a_report_without_the_page_beside_it_says_what_is_missing(browser, large):
    (large.path / layout.REPORT_DATA).unlink()
    open_page(browser, large)
    assert browser.find_element(By.ID, "count").text == "5 of 61 prompts"
    browser.find_element(By.CSS_SELECTOR, ".item summary").click()
    assert "must lie beside this page" in answer(browser)


def test_a_page_that_lacks_the_key_is_told_nothing(browser, large, tmp_path):
    spy = tmp_path / "spy.html"
    spy.write_text(
        f"""<iframe src="{(large.path / layout.REPORT_DATA).as_uri()}"></iframe><script>
        onmessage = (e) => {{ document.title = "told"; }};
        document.querySelector("iframe").onload = (e) => {{
          for (const key of [undefined, "", "guess"]) e.target.contentWindow.postMessage({{name: "text-0", key}}, "*");
          document.body.dataset.asked = "yes";
        }};</script>"""
    )
    browser.get(spy.as_uri())
    wait_for(browser, lambda: browser.execute_script("return document.body.dataset.asked"))
    time.sleep(0.3)
    assert browser.title == ""
