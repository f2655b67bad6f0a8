"""Walk the built documentation as a reader would, and fail on what a reader would stumble over.

    python .ci/check_site.py docs/_build/html [--pictures FOLDER]

Every page must have a title, its links and pictures must lead to files and anchors that exist, no formula may be shown
as LaTeX, and nothing may be fetched from the network. Where Chromium is installed, it opens every page that was written
by hand, and one generated page of each kind: a message of the console is an error, and so is a page that is wider than
the window of a desktop or a phone, a heading that is cut, and on a desktop code or a table that is cut. --pictures also
takes a picture of these pages, for a desktop and a phone, light and dark.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
HIDDEN = {"script", "style", "pre", "code", "math", "textarea", "svg"}  # their text is no prose
EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
LATEX = re.compile(r"\\[a-zA-Z]{2,}|\\[()\[\]]|\$\$")
NOTES = ("[PST]", "Got invalid theme mode")  # what the theme notes in the console; all other messages are errors
GENERATED = ("generated/", "auto_examples/", "_modules/")
NOT_PAGES = {"genindex.html", "search.html", "py-modindex.html"}  # Sphinx's own
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
# Loads pages one after the other into a frame of a given width, and writes down what is wider than it should be.
MEASURE = """<!doctype html><title>running</title><iframe style="width:WIDTHpx;height:HEIGHTpx;border:0"></iframe>
<pre id="found"></pre><script>
const pages = PAGES, frame = document.querySelector("iframe"), found = {};
async function visit(url) {
  await new Promise(done => { frame.onload = done; frame.src = url; });
  await new Promise(done => setTimeout(done, 200));
  const page = frame.contentDocument, root = page.documentElement;
  const parts = page.querySelectorAll(
    IS_DESKTOP ? "h1, h2, h3, .bd-article table, :not(.highlight-text) > div.highlight pre" : "h1, h2, h3");
  const cut = [...parts].filter(part => part.scrollWidth > part.clientWidth + 1 && part.offsetParent);
  found[url] = {width: root.scrollWidth, window: root.clientWidth, cut: cut.map(part => part.innerText.slice(0, 60))};
}
(async () => {
  for (const url of pages) await visit(url);
  document.getElementById("found").textContent = JSON.stringify(found);
  document.title = "done";
})();
</script>"""


class Page(HTMLParser):
    """What a page shows: its title, anchors, links, and prose."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.title, self.anchors = path, "", set[str]()
        self.links: list[tuple[str, str]] = []
        self.prose: list[str] = []
        self._open: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        self.anchors |= {values[key] for key in ("id", "name") if key in values}
        for key in ("href", "src"):
            if key in values:
                self.links.append((tag, values[key]))
        if tag not in EMPTY:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._open:
            while self._open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] == "title" and "svg" not in self._open:
            self.title += data
        elif not HIDDEN & set(self._open):
            self.prose.append(data)


class Site:
    """All pages of a folder, by their paths relative to it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        paths = sorted(path for path in self.folder.rglob("*.html") if "_static" not in path.parts)
        self.pages = {path.relative_to(self.folder).as_posix(): Page(path) for path in paths}

    def mistakes(self, name: str) -> list[str]:
        """Return a sentence for everything that is wrong with a page."""
        page = self.pages[name]
        said = [] if page.title.strip() else ["it has no title"]
        said += [
            f"it shows LaTeX: {found[0]!r} in {text.strip()[:60]!r}"
            for text in page.prose
            if (found := LATEX.search(text))
        ]
        said += [sentence for tag, link in page.links if (sentence := self._broken(page, tag, link))]
        return said

    def _broken(self, page: Page, tag: str, link: str) -> str | None:
        """Return what is wrong with a link, or None."""
        parts = urlsplit(link)
        if parts.scheme or parts.netloc:
            is_fetched = tag not in ("a", "form") and parts.scheme in ("http", "https", "")
            return f"it fetches {link} from the network" if is_fetched and "canonical" not in link else None
        target = (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
        if target.is_dir():
            target /= "index.html"
        if not target.exists():
            return f"its link to {link} leads nowhere"
        other = self.pages.get(target.relative_to(self.folder).as_posix()) if target.suffix == ".html" else None
        if tag == "a" and other and parts.fragment and unquote(parts.fragment) not in other.anchors:
            return f"its link to {link} names an anchor that is not there"
        return None

    def to_look_at(self) -> list[str]:
        """Return the pages written by hand, and one of each generated kind."""
        written = [name for name in self.pages if not name.startswith(GENERATED) and name not in NOT_PAGES]
        kinds = [next((name for name in self.pages if name.startswith(kind)), None) for kind in GENERATED]
        return written + [name for name in kinds if name]


class Browser:
    """A headless Chromium that opens one page at a time."""

    def __init__(self, program: str) -> None:
        self.program = program

    def _run(self, page: Path, *options: str) -> subprocess.CompletedProcess[str]:
        with tempfile.TemporaryDirectory() as profile:
            command = [self.program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
            command += ["--disable-background-networking", "--enable-logging=stderr", "--v=0", "--hide-scrollbars"]
            return subprocess.run(
                [*command, *options, page.as_uri()], capture_output=True, text=True, timeout=300, check=False
            )

    def complaints(self, page: Path) -> list[str]:
        """Return the messages of the console that come from opening a page."""
        said = self._run(page, "--dump-dom", "--virtual-time-budget=3000").stderr
        messages = [line.partition("CONSOLE")[2] for line in said.splitlines() if "CONSOLE" in line]
        return [f"the browser says{said}" for said in messages if not any(note in said for note in NOTES)]

    def too_wide(self, pages: dict[str, Path], label: str) -> list[str]:
        """Return a sentence for each page that is wider than its window, and for each part that is cut."""
        width, height = SIZES[label]
        urls = {page.as_uri(): name for name, page in pages.items()}
        script = MEASURE.replace("WIDTH", str(width)).replace("HEIGHT", str(height))
        script = script.replace("IS_DESKTOP", "true" if label == "desktop" else "false")
        with tempfile.TemporaryDirectory() as folder:
            wrapper = Path(folder) / "measure.html"
            wrapper.write_text(script.replace("PAGES", json.dumps(list(urls))), encoding="utf-8")
            files = ["--allow-file-access-from-files", "--disable-web-security"]
            dom = self._run(wrapper, "--dump-dom", f"--virtual-time-budget={2000 * len(urls)}", *files).stdout
        found = re.search(r'<pre id="found">(.*?)</pre>', dom, flags=re.DOTALL)
        if not found or not found[1]:
            return [f"the browser did not measure the pages for a {label}: {dom[:200]!r}"]
        said = []
        for url, seen in json.loads(html.unescape(found[1])).items():
            if seen["width"] > seen["window"] + 1:
                said.append(f"{urls[url]}: it is {seen['width']} pixels wide on a {label} of {seen['window']}.")
            said += [f"{urls[url]}: this is cut on a {label}: {text!r}." for text in seen["cut"]]
        return said

    def picture(self, page: Path, out: Path, size: tuple[int, int], *, is_dark: bool) -> None:
        """Write a picture of the top of a page."""
        dark = ["--blink-settings=preferredColorScheme=0"] if is_dark else []
        self._run(
            page, f"--screenshot={out}", f"--window-size={size[0]},{size[1]}", "--virtual-time-budget=3000", *dark
        )


def look(site: Site, browser: Browser, pictures: Path | None) -> list[str]:
    """Open pages in the browser; return its complaints, each with the name of its page."""
    names = site.to_look_at()

    def visit(name: str) -> list[str]:
        page = site.pages[name].path
        if pictures:
            for label, size in SIZES.items():
                for shade in ("light", "dark"):
                    out = pictures / f"{name.removesuffix('.html').replace('/', '-')}-{label}-{shade}.png"
                    browser.picture(page, out, size, is_dark=shade == "dark")
        return [f"{name}: {complaint}." for complaint in browser.complaints(page)]

    with ThreadPoolExecutor(2) as pool:
        said = [complaint for complaints in pool.map(visit, names) for complaint in complaints]
    return said + [wide for label in SIZES for wide in browser.too_wide({n: site.pages[n].path for n in names}, label)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Walk the built documentation.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    site = Site(options.folder)
    if not site.pages:
        parser.error(f"there is no page in {options.folder}: run `make docs` first.")
    said = [f"{name}: {mistake}." for name in site.pages for mistake in site.mistakes(name)]
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program:
        if options.pictures:
            options.pictures.mkdir(parents=True, exist_ok=True)
        said += look(site, Browser(program), options.pictures)
    print(*said, sep="\n", end="\n" if said else "")
    opened = (
        f"{len(site.to_look_at())} of them opened in {Path(program).name}" if program else "no browser is installed"
    )
    print(f"{len(site.pages)} pages, {opened}: {len(said)} mistakes.")
    return int(bool(said))


if __name__ == "__main__":
    sys.exit(main())
