"""The demo's report: one page with everything in it, written from the results alone."""

from __future__ import annotations

import os
from html import escape

from ..storage import write_atomically
from .demo import BEST, EUCLIDEAN
from .demo_figures import LOOKS, NAMES, figures
from .demo_results import DemoResults, Digit, Example, Fit, Row, named
from .document import document
from .pixels import digit_png, mask_png

__all__ = ["page", "write_report"]

CAPTIONS = {
    "precision_recall": (
        "Precision and recall",
        "As more of the database is read, the codes of CGHash keep finding the right digit. "
        "Solid with marks: the longest codes; dotted: shorter ones.",
    ),
    "bits": (
        "Quality over number of bits",
        "A model holds all its shorter models: each point of CGHash is the same fit, truncated. "
        "Dashed: Euclidean distance on the pixels.",
    ),
    "objective": (
        "Objective and bound",
        "Every column comes with a bound below which the objective cannot fall with the functions found; "
        "the shaded gap is what is left. RBF model.",
    ),
    "satisfied": ("Satisfied triplets", "Share of the comparisons that the learned distance gets right."),
    "weights": (
        "Weights of the bits",
        "Bits do not count alike, and those of weight zero could be left out. RBF model.",
    ),
}
MARKS = {
    "o": '<circle cx="18" cy="7" r="3.6"/>',
    "s": '<rect x="14.5" y="3.5" width="7" height="7"/>',
    "^": '<path d="M18 2.5l4.2 8h-8.4z"/>',
    "v": '<path d="M18 11.5l4.2-8h-8.4z"/>',
    "D": '<path d="M18 2.5l4.5 4.5-4.5 4.5-4.5-4.5z"/>',
    "": "",
}


def write_report(results: DemoResults, path: str | os.PathLike[str]) -> None:
    """Write the page to a file."""
    write_atomically(path, page(results).encode())


def page(results: DemoResults) -> str:
    """The whole page; it refers to nothing outside itself."""
    parts = (_opening, _table, _examples, _figures, _certificates, _footer)
    return document("cghash: handwritten digits in a few bytes", "\n".join(part(results) for part in parts))


def _opening(results: DemoResults) -> str:
    best, plain = results.best(BEST), results.best(EUCLIDEAN)
    numbers = {
        f"mean average precision, from {plain.map:.2f} by Euclidean distance": f"{best.map:.3f}",
        f"bytes an item, from {plain.n_bytes} as pixels": f"{best.n_bytes}",
        f"of the {results.top} nearest show the right digit": f"{100 * best.top:.1f} %",
        "to learn the codes": f"{results.fit_of(BEST).seconds:.1f} s",
    }
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{value}</dd></div>" for name, value in numbers.items())
    return (
        f"<header>\n<h1>Handwritten digits in {best.n_bytes} bytes each</h1>\n"
        '<p class="lead">CGHash learned these binary codes from comparisons such as “this 3 is nearer to that 3 than '
        f"to that 8”, on {results.n_database} images of 8 × 8 pixels. Here {results.n_queries} images that it never "
        "saw search for their like, by the codes and by what people would use without learning.</p>\n"
        f'<dl class="numbers">{items}</dl>\n</header>'
    )


def _table(results: DemoResults) -> str:
    best = max(results.rows, key=lambda row: row.map)
    body = "\n".join(_row(row, row is best) for row in results.rows)
    heads = ("Method", "Bits", "Bytes", "mAP", f"Top {results.top}", "3-NN error")
    columns = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        '<section aria-labelledby="table">\n<h2 id="table">How well each finds the same digit</h2>\n'
        '<div class="card scroll" tabindex="0" role="region" aria-labelledby="table">\n<table>\n'
        f"<thead><tr>{columns}</tr></thead>\n<tbody>\n{body}\n</tbody>\n"
        "</table>\n</div>\n"
        f'<p class="note">mAP: mean average precision over the whole ranking. Top {results.top}: share of the '
        f"{results.top} nearest that are right. 3-NN error: how often the vote of the three nearest is wrong. All are "
        "expected values over the orders of items at equal distance. Bytes: of one item; images have one a pixel. Sign "
        "of PCA has no more bits than the images have principal components.</p>\n</section>"
    )


def _row(row: Row, best: bool) -> str:
    colour = NAMES[LOOKS[row.method][0]]
    bits = "–" if row.n_bits is None else str(row.n_bits)
    share = f"--share: {100 * row.map:.1f}%; --colour: var(--{colour})"
    bar = f'<span class="track" style="{share}"><span>{row.map:.3f}</span></span>'
    return (
        f'<tr{" class=best" if best else ""}><th scope="row">{escape(row.method)}</th><td>{bits}</td>'
        f'<td>{row.n_bytes}</td><td class="bar">{bar}</td>'
        f"<td>{row.top:.3f}</td><td>{row.knn_error:.3f}</td></tr>"
    )


def _examples(results: DemoResults) -> str:
    shown = "\n".join(_example(example) for example in results.examples)
    return (
        '<section aria-labelledby="nearest">\n<h2 id="nearest">The ten nearest</h2>\n'
        "<p>Wrong digits are framed and named. The queries are chosen by rule: the three different digits where CGHash "
        "gains most, the one where it loses most, and one drawn at random.</p>\n"
        f'<div class="examples">\n{shown}\n</div>\n</section>'
    )


def _example(example: Example) -> str:
    label = example.query.label
    rankings = "\n".join(_ranking(example, method) for method in example.nearest)
    return (
        f'<article class="card example">\n<div class="query">{_image(example.query, f"Query: {named(label)}")}'
        f"<p>{named(label)}<br>{escape(example.why)}</p></div>\n<div>\n{rankings}\n</div>\n</article>"
    )


def _ranking(example: Example, method: str) -> str:
    items = example.nearest[method]
    shown = "".join(_item(item, item.label == example.query.label) for item in items)
    return (
        f'<div class="ranking"><h3>{escape(method)}<small>{example.n_right(method)} of {len(items)} right</small></h3>'
        f'<ol class="items">{shown}</ol></div>'
    )


def _item(item: Digit, right: bool) -> str:
    if right:
        return f"<li>{_image(item, f'{named(item.label)}, right')}</li>"
    return f'<li class="wrong" data-label="{item.label}">{_image(item, f"{named(item.label)}, wrong")}</li>'


def _image(digit: Digit, words: str) -> str:
    return f'<img class="ink" src="{digit_png(digit.pixels)}" alt="{escape(words)}">'


def _figures(results: DemoResults) -> str:
    drawn = "\n".join(_figure(name, svg) for name, svg in figures(results).items())
    keys = "".join(_key(method) for method in LOOKS)
    return (
        '<section aria-labelledby="plots">\n<h2 id="plots">How it comes about</h2>\n'
        f'<ul class="key">{keys}</ul>\n<div class="figures">\n{drawn}\n{_masks(results)}\n</div>\n</section>'
    )


def _figure(name: str, svg: str) -> str:
    title, words = CAPTIONS[name]
    return (
        f'<figure class="card">\n{svg}\n<figcaption id="{name}-caption"><strong>{title}</strong>{words}</figcaption>\n'
        "</figure>"
    )


def _key(method: str) -> str:
    colour, marker = LOOKS[method]
    paint = f'fill="var(--{NAMES[colour]})" stroke="var(--{NAMES[colour]})"'
    line = '<path d="M0 7h36" stroke-width="2"/>'
    return f'<li><svg viewBox="0 0 36 14" {paint} aria-hidden="true">{line}{MARKS[marker]}</svg>{escape(method)}</li>'


def _masks(results: DemoResults) -> str:
    images = "".join(
        f'<li><img src="{mask_png(mask)}" alt="What each pixel adds to linear bit number {rank} by weight"></li>'
        for rank, mask in enumerate(results.masks, 1)
    )
    return (
        f'<figure class="card">\n<ul class="masks">{images}</ul>\n'
        "<figcaption><strong>What linear bits look at</strong>The heaviest bits of the linear model: ink on the blue "
        "pixels pushes a bit to 1, ink on the orange ones to 0.</figcaption>\n</figure>"
    )


def _certificates(results: DemoResults) -> str:
    fits = "\n".join(_certificate(fit) for fit in results.fits)
    return (
        '<section aria-labelledby="certificates">\n<h2 id="certificates">What the fits say of themselves</h2>\n'
        f'<div class="certificates">\n{fits}\n</div>\n</section>'
    )


def _certificate(fit: Fit) -> str:
    parts = "".join(f"<li>{escape(part)}</li>" for part in fit.message.split("; "))
    colour = NAMES[LOOKS[fit.method][0]]
    return (
        f'<div class="card" style="--colour: var(--{colour})"><h3>{escape(fit.method)}</h3>\n<ul>{parts}'
        f"<li>learned in {fit.seconds:.1f} s</li></ul></div>"
    )


def _footer(results: DemoResults) -> str:
    return (
        f"<footer>Data: the digits of scikit-learn, {results.n_database} to learn from and to search, "
        f"{results.n_queries} as queries, seed {results.seed}. The whole run took {results.seconds:.0f} s; its numbers "
        "are in results.json beside this page.</footer>"
    )
