"""The sections of figures: each data set, unseen classes, different K, quality over bytes."""

from __future__ import annotations

from html import escape

from .charts import Chart, against_bits, precision_recall
from .comparisons import quality_over_bytes, seen_and_unseen
from .figure_files import FigureFiles
from .fits import FIGURES, certificates, fits_of, masks
from .html import paragraph, section
from .line_styles import LineStyle
from .tables import quality_table
from .values import EUCLIDEAN, Measured, title_of, title_of_protocol

__all__ = ["Plots"]

EMBEDDINGS = "newsgroups20"  # the data set whose picture stands for the others


class Plots:
    """Draws the figures of a report."""

    def __init__(self, measured: Measured, files: FigureFiles, styles: dict[str, LineStyle]) -> None:
        self.measured, self.files, self.styles = measured, files, styles

    def seen(self) -> str:
        """The paper's three plots and a table for each data set."""
        return section("data-sets", "Data set by data set", self._words(), *self._all_sets("seen"))

    def heldout(self) -> str:
        """The same plots where the database was not trained on either."""
        words = paragraph(
            "Here neither queries nor database were among the training items, while their classes were: what codes "
            "are worth for items that come later."
        )
        parts = self._all_sets("heldout")
        return section("heldout", "Items not trained on", words if parts else "", *parts)

    def unseen(self) -> str:
        """How the order changes on classes that no method learned from, and the same plots for them."""
        both = [d for d in self.measured.datasets("unseen") if d in self.measured.datasets("seen")]
        slopes = "\n".join(self._slope(dataset) for dataset in both)
        words = paragraph(
            "Here queries and database are of classes that were not among the training items: a classifier in disguise "
            "has nothing to go by. With fewer classes in the database a random order is right more often, so compare a "
            "line's slope with that of the reference and of other methods, not with zero."
        )
        parts = self._all_sets("unseen")
        kind = "figures single" if len(both) == 1 else "figures"
        shown = f'<div class="{kind}">\n{slopes}\n</div>' if slopes else ""
        return section("unseen", "Classes never seen in training", words if parts else "", shown, *parts)

    def different_k(self) -> str:
        """The paper's figure of K, for each data set where there are such results."""
        parts = []
        for protocol in self.measured.protocols:
            for dataset in self.measured.datasets(protocol):
                methods = self.measured.methods_of_k(dataset, protocol)
                if methods:
                    drawn = self._three(self._chart(dataset, protocol, methods), f"{dataset} {protocol} K")
                    heading = f"<h3>{escape(_titled(dataset, protocol))}</h3>"
                    parts.append(f'{heading}\n<div class="figures">\n{drawn}\n</div>')
        words = "CGHash with triplets of K near and K far neighbours of each training item."
        return section("different-k", "More neighbours to learn from", paragraph(words) if parts else "", *parts)

    def bytes(self) -> str:
        """Quality over bytes, where the vectors themselves are there to compare with."""
        protocols = {d: self.measured.main_protocol(d) for d in self.measured.datasets()}
        sets = [d for d, protocol in protocols.items() if EUCLIDEAN in self.measured.methods(d, protocol)]
        if EMBEDDINGS in sets:
            sets = [EMBEDDINGS]
        drawn = [self._bytes(dataset, protocols[dataset], alone=len(sets) == 1) for dataset in sets]
        body = "\n".join(part for part in drawn if part)
        if not body:
            return ""
        words = paragraph("How well items are ranked for the bytes that each one takes.")
        kind = "figures single" if len(sets) == 1 else "figures"
        return section("bytes", "Quality over bytes", words, f'<div class="{kind}">\n{body}\n</div>')

    def fits(self) -> str:
        """How the fits of CGHash went: what they say of themselves, objective and bound, triplets, weights, masks."""
        parts = []
        for dataset in self.measured.datasets():
            found = fits_of(self.measured, dataset)
            if found:
                title = title_of(dataset)
                drawn = [
                    self.files.add(f"{dataset} {name}", paint(found, self.styles), f"{title}: {what}", words)
                    for name, (paint, what, words) in FIGURES.items()
                ]
                figures = "\n".join(part for part in (*drawn, *map(masks, found)) if part)
                shown = f'{certificates(found)}\n<div class="figures">\n{figures}\n</div>'
                parts.append(f"<h3>{escape(title)}</h3>\n{shown}")
        words = paragraph("Fits of the longest codes on the first split, column by column.")
        return section("fits", "How the fits went", words if parts else "", *parts)

    def _chart(self, dataset: str, protocol: str, methods: list[str] | None = None) -> Chart:
        names = methods or self.measured.methods(dataset, protocol)
        return Chart(self.measured, dataset, protocol, self.styles, names)

    def _all_sets(self, protocol: str) -> list[str]:
        sets = self.measured.datasets(protocol)
        return [self._set(dataset, protocol) for dataset in sets if self.measured.codes(dataset, protocol)]

    def _set(self, dataset: str, protocol: str) -> str:
        drawn = self._three(self._chart(dataset, protocol), f"{dataset} {protocol}")
        lengths = reversed(self.measured.shown(dataset, protocol))
        tables = "\n".join(quality_table(self.measured, dataset, protocol, bits) for bits in lengths)
        return (
            f"<h3>{escape(title_of(dataset))}</h3>\n{paragraph(self._sizes(dataset, protocol), 'note')}\n"
            f'<div class="figures">\n{drawn}\n{tables}\n</div>'
        )

    def _three(self, chart: Chart, name: str) -> str:
        title, where = title_of(chart.dataset), (chart.dataset, chart.protocol)
        parts = [
            self.files.add(
                f"{name} precision recall",
                precision_recall(chart),
                f"{title}: precision and recall",
                f"With {chart.longest} bits, mean over splits.{self._shorter(chart)}",
            )
        ]
        for key, words in (
            ("top", f"{title}: right among the {self.measured.size('top', *where)} nearest"),
            ("knn_error", f"{title}: error of the vote of the {self.measured.size('k', *where)} nearest"),
        ):
            better = "Higher is better." if key == "top" else "Lower is better."
            parts.append(self.files.add(f"{name} {key}", against_bits(chart, key), words, better))
        return "\n".join(part for part in parts if part)

    def _shorter(self, chart: Chart) -> str:
        bits = self.measured.shown(chart.dataset, chart.protocol)[:-1]
        return f" Dotted: {', '.join(map(str, bits))} bits." if bits else ""

    def _slope(self, dataset: str) -> str:
        figure = seen_and_unseen(self._chart(dataset, "seen"), self._chart(dataset, "unseen"), "map")
        words = "Mean average precision with the longest codes, on classes of the training items and on others."
        return self.files.add(f"{dataset} seen unseen", figure, f"{title_of(dataset)}: seen and unseen", words)

    def _bytes(self, dataset: str, protocol: str, *, alone: bool) -> str:
        name = "quality over bytes" if alone else f"quality over bytes {dataset}"
        title = _titled(dataset, protocol)
        words = "Dashed: the vectors themselves."
        return self.files.add(name, quality_over_bytes(self._chart(dataset, protocol)), title, words)

    def _sizes(self, dataset: str, protocol: str) -> str:
        cells = [c for c in self.measured.good if (c["dataset"], c["protocol"]) == (dataset, protocol)]
        known = next((cell for cell in cells if "n_train" in cell), None)
        splits = len({cell["split"] for cell in cells})
        words = f"{splits} splits" if splits != 1 else "One split, so no deviations"
        if known is None:
            return f"{words}."
        return (
            f"{words}; {known['n_train']} training items, {known['n_queries']} queries among {known['n_database']} "
            f"items, {known['n_features']} dimensions."
        )

    def _words(self) -> str:
        return paragraph(
            "mAP: mean average precision over the whole ranking. Top: share of the nearest that are right. k-NN error: "
            "how often the vote of the k nearest is wrong. All are expected values over the orders of items at equal "
            "distance. Numbers are means over splits with the sample standard deviation. In the tables the best codes "
            "are bold; dotted underlines mark those whose difference from the best, split by split, is within one "
            "deviation. Methods of the paper have solid lines and full marks, later ones dashed lines and hollow "
            "marks.",
        )


def _titled(dataset: str, protocol: str) -> str:
    return f"{title_of(dataset)}, {title_of_protocol(protocol)}"
