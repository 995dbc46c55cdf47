"""What pages of a site lead to, and what of it is not there."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class Links(HTMLParser):
    """What a page leads to and loads, its anchors, and the texts in the place of its pictures."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors, self.links, self.loaded = set(), set(), set()
        self.ids: list[str] = []
        self.pictures: list[str] = []  # the text of each
        self.articles = 0  # that are open
        self.open_entries = 0  # of the navigation
        self._folded: list[bool] = []  # entries around, whether each hides those below it
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        found = dict(attrs)
        self.articles += tag == "article"
        classes = (found.get("class") or "").split()
        if tag == "li" and any(name.startswith("toctree-l") for name in classes):
            self._folded.append(False)
            self.open_entries += not self.articles and not any(self._folded)
        elif "toctree-checkbox" in classes:
            self._folded[-1] = "checked" not in found
        self.anchors |= {found[key] for key in ("id", "name") if found.get(key)}
        self.ids += [found["id"]] if "id" in found else []
        self.pictures += [found.get("alt") or ""] if tag == "img" else []
        if tag == "a" and "href" in found:
            # Around the article the theme leads to the page's top; within it an anchor is missing.
            top = found["href"] == "#" and not self.articles
            self.links |= set() if top else {found["href"] or ""}
        elif tag == "link" and found.get("rel") not in ("index", "search", "next", "prev"):
            self.loaded.add(found["href"])
        self.loaded |= {found["src"]} if found.get("src") else set()

    def handle_endtag(self, tag: str) -> None:
        self.articles -= tag == "article"
        if tag == "li" and self._folded and not self.articles:
            self._folded.pop()


def pages(folder: Path) -> dict[Path, Links]:
    """Return the pages of a site."""
    return {path: Links(path.read_text()) for path in folder.rglob("*.html")}


def dead(folder: Path) -> list[tuple[str, str]]:
    """Return page and link of all that leads nowhere, or loads from elsewhere."""
    folder = folder.resolve()
    found, site = [], pages(folder)
    for path, page in site.items():
        name = str(path.relative_to(folder))
        found += [(name, link) for link in page.loaded if urlsplit(link).netloc]
        for link in page.links | page.loaded:
            parts = urlsplit(link)
            if parts.scheme in ("https", "http", "mailto", "data"):
                continue
            place = path.parent / unquote(parts.path) if parts.path else path
            target = place.resolve()
            anchors = site[target].anchors if target in site else {parts.fragment}
            there = target.is_file() and link not in ("", "#")
            if not there or (parts.fragment and unquote(parts.fragment) not in anchors):
                found.append((name, link))
    return found


def faults(folder: Path) -> list[tuple[str, str]]:
    """Return page and fault of ids that stand twice, and of pictures without a text."""
    found = []
    for path, page in pages(folder).items():
        twice = [f"the id {name} twice" for name in set(page.ids) if page.ids.count(name) > 1]
        silent = [f"{page.pictures.count('')} pictures without a text"] * ("" in page.pictures)
        found += [(str(path.relative_to(folder)), fault) for fault in twice + silent]
    return found
