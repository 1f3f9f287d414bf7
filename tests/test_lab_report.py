"""The report of experiments: statistics by hand, claims on results whose answer is known, the page and its files."""

from __future__ import annotations

import base64
import csv
import importlib
import io
import itertools
import math
import re
import statistics
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cghash.exceptions import InvalidInputError
from cghash.lab.reporting import markdown_table, write_report
from cghash.lab.reporting.claims import AGREES, DISAGREES, UNMEASURED, claims
from cghash.lab.reporting.contests import contests
from cghash.lab.reporting.examples import examples_of, examples_section
from cghash.lab.reporting.figure_files import file_name
from cghash.lab.reporting.line_labels import spread_out
from cghash.lab.reporting.line_styles import FREE, KNOWN, PAPER_TEN, line_styles_of
from cghash.lab.reporting.ranks import Rankings, rank_values
from cghash.lab.reporting.tables import cells_csv, cost_table, quality_table, summary_csv
from cghash.lab.reporting.text_sections import cells_section, paper_and_here, ranks_section
from cghash.lab.reporting.values import CRITERIA, Measured, Spread, paired

HOSTILE = '<script>alert("$x$")</script>'
PICTURE = base64.b64encode(b"a picture").decode()


def cell(method, *, dataset="isolet", split=0, bits=8, protocol="seen", quality=0.5, **others):
    """A good cell; the error is 1 - quality, the curve falls from 1 to 2·quality - 1 and has area `quality`."""
    curve = {"precision": [1.0, quality, 2 * quality - 1], "recall": [0.0, 0.5, 1.0]}
    criteria = {"map": quality, "top": quality, "knn_error": 1 - quality, "ndcg": quality}
    return {
        "dataset": dataset, "protocol": protocol, "split": split, "method": method, "bits": bits, "status": "ok",
        "n_train": 100, "n_database": 1000, "n_queries": 50, "n_features": 16, "top": 50, "k": 3, "parameters": {},
        "seconds_fit": 1.5, "seconds_encode": 0.002, "trained_once": True, "n_bits": bits, "bytes": -(-bits // 8),
        "peak_mb": 100.0, "criteria": criteria, "curve": curve, "commit": "abc1234", "cpu": "a processor", "cores": 2,
        "versions": {"numpy": "2.0"}, "seed": split,
    } | others  # fmt: skip


def failed(method, **others):
    kept = {
        key: value for key, value in cell(method).items() if key in ("dataset", "protocol", "split", "method", "bits")
    }
    return kept | {"status": "failed", "error": "MemoryError: <too much>"} | others


def grid(qualities, **others):
    """Cells of several methods at two lengths on two splits; the longer codes are better by 0.05."""
    return [
        cell(method, quality=quality + 0.05 * (bits == 16) + 0.01 * split, bits=bits, split=split, **others)
        for method, quality in qualities.items()
        for bits, split in itertools.product((8, 16), (0, 1))
    ]


# --- statistics


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9))
def test_deviation_is_that_of_a_sample(values):
    spread = Spread.of(values)
    assert spread.mean == pytest.approx(np.mean(values), abs=1e-9)
    assert spread.deviation == pytest.approx(np.std(values, ddof=1), abs=1e-9)


def test_one_split_has_no_deviation_and_nan_does_not_count():
    assert str(Spread.of([0.25, math.nan])) == "0.250"
    assert str(Spread.of([math.nan])) == "–"


def test_means_are_over_the_splits_of_the_same_cell():
    measured = Measured([cell("LSH", split=s, quality=q) for s, q in ((0, 0.2), (1, 0.4), (2, 0.9))] + [cell("ITQ")])
    spread = measured.spread("isolet", "seen", "LSH", 8, "map")
    assert (spread.mean, spread.n) == (pytest.approx(0.5), 3)
    assert spread.deviation == pytest.approx(math.sqrt((0.09 + 0.01 + 0.16) / 2))


def test_a_cell_that_comes_twice_counts_once_and_the_later_stands():
    measured = Measured([cell("LSH", quality=0.1), cell("LSH", quality=0.3)])
    assert measured.n_twice == 1
    assert measured.spread("isolet", "seen", "LSH", 8, "map").mean == 0.3
    assert "1 came twice" in cells_section(measured)


def test_cells_asked_for_differently_are_not_averaged_together():
    old = [cell("LSH", split=s, quality=0.9, asked="old") for s in (0, 1)]
    new = [cell("LSH", split=s, bits=b, quality=0.2, asked="new") for s in (0, 2, 3) for b in (8, 16)]
    measured = Measured([*new, *old, cell("ITQ", asked="other")])
    assert measured.spread("isolet", "seen", "LSH", 8, "map") == Spread.of([0.2] * 3)
    assert (measured.left_out.total(), measured.n_twice) == (2, 0)
    words = cells_section(measured)
    assert "2 were left out, since they were asked for differently" in words
    assert "2 of LSH on ISOLET, seen classes." in words


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
def test_of_equally_many_cells_those_asked_for_last_are_kept(order):
    results = [cell("LSH", split=s, quality=0.1 if name == "a" else 0.9, asked=name) for name in order for s in (0, 1)]
    (value,) = set(Measured(results).values("isolet", "seen", "LSH", 8, "map").values())
    assert value == {"a": 0.1, "b": 0.9}[order[-1]]


def test_a_cell_that_comes_often_does_not_make_its_way_of_asking_frequent():
    results = [cell("LSH", asked="a")] * 5 + [cell("LSH", split=s, asked="b") for s in (0, 1)]
    assert {c["asked"] for c in Measured([*results, cell("LSH", asked="a")]).cells} == {"b"}


def test_cells_that_do_not_say_how_they_were_asked_for_are_alike():
    results = [cell("LSH", split=s) for s in (0, 1, 2)] + [cell("LSH", split=3, asked="a")]
    measured = Measured(results)
    assert len(measured.good) == 3
    assert measured.left_out.total() == 1
    assert "left out" not in cells_section(Measured(results[:3]))


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["a", "b", None])), min_size=1, max_size=12))
def test_all_results_are_kept_or_counted_and_those_kept_are_alike(asked):
    results = [cell("LSH", split=s) | ({"asked": name} if name else {}) for s, name in asked]
    measured = Measured(results)
    assert len(measured.cells) + measured.n_twice + measured.left_out.total() == len(results)
    assert len({c.get("asked") for c in measured.cells}) == 1


def test_several_commits_and_sources_are_told():
    results = [cell("LSH", split=s, commit=f"c{s}", code="same" if s else "other") for s in (0, 1, 2)]
    words = cells_section(Measured(results))
    assert "of 3 commits: c0, c1, c2." in words
    assert "of 2 states of the sources (digests): other, same." in words
    assert "They are of" not in cells_section(Measured(results[:1]))


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 4).map(float), min_size=1, max_size=8), st.booleans())
def test_rank_is_one_plus_the_better_ones_plus_half_of_the_equal_ones(values, larger):
    ranks = rank_values(values, larger)
    for method, value in values.items():
        better = sum((other > value) if larger else (other < value) for other in values.values())
        equal = sum(other == value for other in values.values()) - 1
        assert ranks[method] == 1 + better + equal / 2


def test_average_ranks_over_data_sets_criteria_and_protocols():
    results = [
        *(cell(m, quality=q) for m, q in {"A": 0.9, "B": 0.5, "C": 0.5}.items()),  # ranks 1, 2.5, 2.5 by each criterion
        *(cell(m, quality=q, protocol="unseen") for m, q in {"A": 0.1, "B": 0.8, "C": 0.4}.items()),  # 3, 1, 2
        cell("Euclidean", quality=0.99),
    ]
    rankings = Rankings(Measured(results))
    assert rankings.n_tables == 6
    assert rankings.average(lambda rank: rank.protocol == "seen") == {"A": 1.0, "B": 2.5, "C": 2.5}
    assert rankings.average(lambda rank: rank.protocol == "unseen") == {"B": 1.0, "C": 2.0, "A": 3.0}
    assert rankings.average() == {"B": 1.75, "A": 2.0, "C": 2.25}


def test_methods_that_miss_a_ranking_come_last():
    results = grid({"A": 0.5, "B": 0.6}) + grid({"A": 0.5, "B": 0.6, "C": 0.9}, dataset="usps")
    assert list(Rankings(Measured(results)).order()) == ["B", "A", "C"]


def test_ranking_without_a_criterion_is_left_out():
    results = [cell(m, criteria={"map": q, "top": q, "knn_error": math.nan}) for m, q in (("A", 0.5), ("B", 0.6))]
    assert Rankings(Measured(results)).n_tables == 2


def test_methods_are_ranked_on_the_splits_that_all_have():
    """A is at 0.5 and 0.9, of which B has the hard one alone, at 0.6."""
    results = [cell("A", split=0, quality=0.5), cell("A", split=1, quality=0.9), cell("B", split=0, quality=0.6)]
    measured = Measured(results)
    assert Rankings(measured).average() == {"B": 1.0, "A": 2.0}
    assert "ISOLET, seen classes: 1 split in common, of A 2, B 1." in ranks_section(measured)
    assert "different splits" not in ranks_section(Measured(grid({"A": 0.5, "B": 0.6})))


def test_methods_without_a_common_split_are_ranked_by_their_own():
    measured = Measured([cell("A", split=0, quality=0.5), cell("B", split=1, quality=0.4)])
    assert Rankings(measured).average() == {"A": 1.0, "B": 2.0}
    assert "no splits in common" in ranks_section(measured)


def test_variants_do_not_push_others_down():
    qualities = {"CGHash": 0.7, "CGHash default": 0.9, "CGHash tuned": 0.8, "SDH": 0.75, "LSH": 0.3}
    measured = Measured(grid(qualities))
    assert Rankings(measured).average() == {
        "CGHash default": 1.0,  # before SDH, LSH
        "CGHash tuned": 1.0,
        "CGHash": 2.0,  # SDH is before it
        "SDH": 2.0,  # CGHash tuned is before it, no other counts
        "LSH": 3.0,
    }
    assert "ranked one at a time" in ranks_section(measured)
    assert "one at a time" not in ranks_section(Measured(grid({"CGHash": 0.5, "LSH": 0.4})))


@pytest.mark.parametrize(
    ("variants", "rank"),
    [
        ({"CGHash tuned": 0.1, "CGHash": 0.9}, 1.0),  # the tuned one is the main one, and worse
        ({"CGHash": 0.1, "CGHash default": 0.9}, 1.0),
        ({"CGHash a": 0.9, "CGHash b": 0.1}, 2.0),  # the first
    ],
)
def test_others_are_ranked_beside_the_main_variant(variants, rank):
    assert Rankings(Measured(grid({"LSH": 0.5, **variants}))).average()["LSH"] == rank


def test_variants_alone_are_not_ranked():
    assert Rankings(Measured(grid({"CGHash": 0.5, "CGHash tuned": 0.6}))).ranks == []


def test_paired_difference_counts_the_splits_that_both_have():
    gain, ahead = paired(CRITERIA["knn_error"], {0: 0.1, 1: 0.3, 2: 0.2}, {0: 0.2, 1: 0.2, 3: 0.0})
    assert (gain.mean, gain.n, ahead) == (pytest.approx(0.0), 2, 1)
    assert gain.deviation == pytest.approx(statistics.stdev([0.1, -0.1]))


def test_methods_are_compared_where_half_of_them_are():
    results = [cell(m, bits=b) for m in ("A", "B", "C") for b in (8, 16)] + [cell("A", bits=64)]
    assert Measured(results).longest("isolet", "seen") == 16


def test_one_method_named_by_its_k_is_like_others():
    results = [cell(m) for m in ("LSH", "CGHash K=10")] + [cell(f"CGHash K={k}", dataset="usps") for k in (3, 10)]
    measured = Measured(results)
    assert measured.methods("isolet", "seen") == ["CGHash K=10", "LSH"]
    assert measured.methods_of_k("isolet", "seen") == []
    assert measured.methods("usps", "seen") == []
    assert measured.methods_of_k("usps", "seen") == ["CGHash K=3", "CGHash K=10"]
    assert line_styles_of(["mine K=5", "LSH"])["mine K=5"].group == "later"


def test_titles_are_of_the_data_set():
    results = [cell("LSH"), cell("LSH", dataset="usps", top=20, k=1)]
    measured = Measured(results)
    titles = [[measured.title(key, d) for key in ("top", "knn_error")] for d in ("isolet", "usps", None)]
    assert titles == [["top-50", "3-NN error"], ["top-20", "1-NN error"], ["top-20/50", "1/3-NN error"]]
    assert "top-20<" in quality_table(measured, "usps", "seen")
    assert "top-50<" in quality_table(measured, "isolet", "seen")


# --- claims


TEN = {name: 0.3 + 0.01 * place for place, name in enumerate(PAPER_TEN)}  # ITQ is the best of them: 0.39


def verdicts(results):
    return [claim.verdict for claim in claims(Measured(results))]


def test_all_is_agreed_with_where_cghash_is_first_everywhere():
    results = grid({"CGHash": 0.6, "SDH": 0.9, **TEN}) + grid({"CGHash": 0.6, **TEN}, dataset="usps")
    found = claims(Measured(results))
    assert [claim.verdict for claim in found] == [AGREES, AGREES, AGREES, UNMEASURED, UNMEASURED, UNMEASURED]
    assert "Largest area on 2 of 2" in found[0].here
    assert "Ahead in 4 of 4 cases" in found[1].here  # 2 data sets × 2 lengths; SDH is not one of the ten
    assert not any(claim.exceptions for claim in found)


def test_one_lost_data_set_of_three_breaks_each_but_not_most():
    sets = {"isolet": 0.6, "mnist": 0.6, "usps": 0.35}
    results = [c for dataset, q in sets.items() for c in grid({"CGHash": q, **TEN}, dataset=dataset)]
    found = claims(Measured(results))
    assert [claim.verdict for claim in found[:3]] == [DISAGREES, AGREES, AGREES]
    assert "on 2 of 3" in found[0].here
    assert "4 of 6 cases" in found[1].here
    assert len(found[1].exceptions) == 2
    # at 8 bits: ITQ 0.39 and 0.40 on the splits, CGHash 0.35 and 0.36
    assert "USPS, top-50, 8 bits: ITQ 0.395 ± 0.007 against 0.355 ± 0.007" in found[1].exceptions[0]
    assert "ahead on 0 of 2 splits" in found[1].exceptions[0]


def test_settings_chosen_by_validation_are_claimed_for_apart():
    """ITQ is ahead of CGHash as the paper sets it, and behind it as validation does."""
    found = claims(Measured(grid({"CGHash": 0.35, "CGHash tuned": 0.8, **TEN})))
    assert [claim.verdict for claim in found[:3]] == [DISAGREES] * 3
    assert [claim.verdict for claim in found[6:]] == [AGREES] * 3
    assert found[6].words.startswith("CGHash tuned has a larger area")
    assert "ITQ" in found[1].exceptions[0]


def test_verdicts_are_by_the_ten_and_the_count_with_itq_told_the_labels_stands_beside():
    measured = Measured(grid({"CGHash": 0.6, "ITQ-CCA": 0.7, **TEN}))
    found = claims(measured)
    assert [claim.verdict for claim in found[:3]] == [AGREES] * 3
    eleventh = "where ITQ told the labels, ITQ-CCA, is an eleventh"
    assert f"Largest area on 1 of 1 data sets (on 0 of 1 {eleventh})." in found[0].here
    assert f"first on 1 of 1 data sets (on 0 of 1 {eleventh})." in found[0].here
    assert "Ahead in 2 of 2 cases" in found[1].here  # one data set × two lengths
    assert f"in 1 of 1 with the longest codes (in 0 of 2 and 0 of 1 {eleventh});" in found[1].here
    rows = re.findall(r"<tr>.*?</tr>", paper_and_here(measured))
    assert ["the ten</td><td>ITQ<" in row for row in rows[1:3]] == [True, False]
    assert "the ten and ITQ-CCA</td><td>ITQ-CCA<" in rows[2]
    assert (rows[1].count('"best"'), rows[2].count('"best"')) == (1, 0)


def test_no_eleventh_is_spoken_of_where_it_was_not_measured():
    page = paper_and_here(Measured(grid({"CGHash": 0.6, **TEN})))
    assert "ITQ-CCA" not in page


def test_contests_are_decided_on_the_splits_that_both_have():
    """Over all of its splits LSH is at 0.6 and ahead; on the two that CGHash has too it is at 0.45."""
    ours = [cell("CGHash", split=s, quality=0.5) for s in (0, 1)]
    theirs = [cell("LSH", split=s, quality=q) for s, q in enumerate((0.4, 0.5, 0.9))]
    measured = Measured(ours + theirs)
    (contest,) = contests(measured, "map")
    assert (contest.won, contest.n_ahead, contest.gain.n) == (True, 1, 2)
    assert (contest.theirs.mean, contest.gain.mean) == (pytest.approx(0.45), pytest.approx(0.05))
    assert claims(measured)[0].verdict == AGREES  # the areas too


def test_the_best_rival_is_the_one_that_is_least_behind_on_common_splits():
    """BRE has the larger mean, from an easy split alone, where CGHash is far ahead of it."""
    values = {"CGHash": {0: 0.3, 1: 0.9}, "BRE": {1: 0.6}, "LSH": {0: 0.29, 1: 0.85}}
    results = [cell(m, split=s, quality=q) for m, found in values.items() for s, q in found.items()]
    (contest,) = contests(Measured(results), "map")
    assert (contest.best, contest.gain.n) == ("LSH", 2)


def test_contests_without_a_common_split_are_decided_by_the_means():
    (contest,) = contests(Measured([cell("CGHash", split=0, quality=0.5), cell("LSH", split=1, quality=0.6)]), "map")
    assert (contest.won, contest.gain.n, contest.theirs.mean) == (False, 0, 0.6)


def test_methods_of_the_ten_that_were_not_measured_are_named():
    page = paper_and_here(Measured(grid({"CGHash": 0.6, "LSH": 0.3})))
    assert "nothing is said of them: SSC, LSI, LCH, SPH, STH, AGH, BRE, SPLH, ITQ." in page
    assert "nothing is said of them" not in paper_and_here(Measured(grid({"CGHash": 0.6, **TEN})))


def test_half_of_the_cases_is_not_most():
    results = grid({"CGHash": 0.6, **TEN}) + grid({"CGHash": 0.1, **TEN}, dataset="usps")
    assert verdicts(results)[1:3] == [DISAGREES, DISAGREES]


def test_area_may_disagree_where_average_precision_does_not():
    low = {"precision": [1.0, 0.1, 0.1], "recall": [0.0, 0.5, 1.0]}
    first = claims(Measured([cell("CGHash", quality=0.6, curve=low), cell("LSH", quality=0.5)]))[0]
    assert first.verdict == DISAGREES
    assert "Largest area on 0 of 1" in first.here
    assert "first on 1 of 1" in first.here
    assert "area 0.500 of LSH against 0.325" in first.exceptions[0]


def test_other_data_sets_count_only_where_the_paper_has_none():
    results = grid({"CGHash": 0.6, **TEN}) + grid({"CGHash": 0.1, **TEN}, dataset="mine")
    assert {contest.dataset for contest in contests(Measured(results), "map")} == {"isolet"}
    assert {c.dataset for c in contests(Measured(results[len(results) // 2 :]), "map")} == {"mine"}


def test_a_difference_within_one_deviation_is_marked():
    ours = [cell("CGHash", split=s, quality=q) for s, q in ((0, 0.5), (1, 0.7))]
    theirs = [cell("LSH", split=s, quality=q) for s, q in ((0, 0.55), (1, 0.6))]
    (contest,) = contests(Measured(ours + theirs), "map")  # +0.025 ± 0.106, ahead on one of two
    assert (contest.won, contest.close, contest.n_ahead) == (True, True, 1)


@pytest.mark.parametrize(("qualities", "verdict"), [((0.3, 0.4, 0.5, 0.6), AGREES), ((0.6, 0.5, 0.4, 0.5), DISAGREES)])
def test_larger_k_is_counted_step_by_step(qualities, verdict):
    methods = {f"CGHash K={k}": q for k, q in zip((3, 10, 20, 30), qualities, strict=True)}
    claim = claims(Measured(grid(methods, dataset="scene15")))[3]
    assert claim.verdict == verdict
    better = sum(b > a for a, b in itertools.pairwise(qualities))
    assert f"{6 * better} of 18 steps" in claim.here  # 3 steps × 2 lengths × 3 criteria


@pytest.mark.parametrize(("maps", "verdict"), [((0.50, 0.504, 0.497), AGREES), ((0.5, 0.6, 0.4), DISAGREES)])
def test_influence_of_c_is_read_from_what_was_tried(maps, verdict):
    tried = [{"C": c, "map": value} for c, value in zip((1e-4, 1e-3, 1e-2), maps, strict=True)]
    results = [cell("CGHash", split=s, tried=tried, chosen={"C": 1e-3}) for s in (0, 1)]
    claim = claims(Measured(results))[4]
    assert claim.verdict == verdict
    assert f"by {max(maps) - min(maps):.3f}" in claim.here


@pytest.mark.parametrize(("n_right", "verdict"), [(9, AGREES), (8, DISAGREES)])
def test_examples_agree_from_nine_in_ten_on(n_right, verdict):
    claim = claims(Measured([cell("CGHash", dataset="mnist", pictures=pictures(n_right))]))[5]
    assert claim.verdict == verdict
    assert f"MNIST: {n_right} of 10" in claim.here


def pictures(n_right):
    nearest = [{"png": PICTURE, "label": HOSTILE, "right": i < n_right} for i in range(10)]
    return {"query": [{"png": PICTURE, "label": "3"}], "nearest": [nearest]}


def found(n, n_right, label=lambda q: q % 3):
    """What n queries of three classes find: so many right ones of ten each."""
    items = [[{"png": PICTURE, "label": "x", "right": i < n_right(q)} for i in range(10)] for q in range(n)]
    return {"query": [{"png": PICTURE, "label": str(label(q))} for q in range(n)], "nearest": items}


def test_of_many_queries_those_are_shown_where_most_is_gained_and_lost():
    ours, theirs = found(30, lambda q: 0 if q == 7 else 10), found(30, lambda q: 10 - q % 10 if q != 7 else 10)
    results = [cell("CGHash, RBF", pictures=ours), cell("LSH", pictures=theirs), cell("ITQ", pictures=pictures(3))]
    examples = examples_of(Measured(results), "isolet")
    shown = {example.why: example for example in examples}
    assert [example.why for example in examples[:4]] == ["CGHash gains most"] * 3 + ["CGHash loses most"]
    assert sorted(example.query["label"] for example in examples[:3]) == ["0", "1", "2"]
    assert [sum(i["right"] for i in items) for _, items in shown["CGHash loses most"].nearest.values()] == [0, 10]
    assert list(examples[0].nearest) == ["CGHash, RBF", "LSH"]  # ITQ was asked something else
    assert "chosen by rule" in examples_section(Measured(results))
    assert "chosen by rule" not in examples_section(Measured([cell("CGHash", pictures=found(3, lambda q: 9))]))


FIT = {"message": "2 bits; <all> learned", "objective": [0.5, 0.25], "bound": [None, 0.125], "satisfied": [0.5, 1.0],
       "weights": [0.5, 0.0], "masks": [PICTURE, "<script>"]}  # fmt: skip


def test_shorter_codes_with_curves_have_tables_and_dotted_curves(tmp_path):
    results = grid({"CGHash": 0.6, "LSH": 0.3})
    page = write_report(results, tmp_path).read_text()
    assert "Dotted: 8 bits." in page
    assert "criteria with 8 bits" in page
    assert Measured(results).shown("isolet", "seen") == [8, 16]
    plain = [{key: value for key, value in r.items() if key != "curve" or r["bits"] == 16} for r in results]
    assert Measured(plain).shown("isolet", "seen") == [16]


def test_missing_data_sets_of_the_paper_are_named():
    page = paper_and_here(Measured(grid({"CGHash": 0.5, "LSH": 0.4})))
    assert "not in the results: SCENE-15, MNIST, LABELME, USPS, PASCAL07." in page
    assert paper_and_here(Measured([cell("LSH")])) == ""


# --- labels and styles


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.05))
def test_labels_stand_a_step_apart_within_the_axes(heights, step):
    places = spread_out(sorted(heights), step, 0.0, 1.0)
    assert places.min() >= -1e-9
    assert places.max() <= 1 + 1e-9
    assert np.all(np.diff(places) >= step - 1e-9)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=10, unique=True))
def test_labels_that_do_not_touch_stay_where_they_are(tenths):
    heights = sorted(value / 10 for value in tenths)
    assert spread_out(heights, 0.05, 0.0, 1.0) == pytest.approx(heights)


def test_no_two_known_methods_look_alike():
    styles = [(style.colour, style.marker, style.group) for style in (*KNOWN.values(), *FREE)]
    assert len(set(styles)) == len(styles)
    assert all(style.colour == style.colour.lower() for style in KNOWN.values())  # as matplotlib writes them


def test_unknown_names_get_a_look_of_their_own_that_others_do_not_change():
    names = [f"method {i}" for i in range(len(FREE))]
    assert len({(style.colour, style.marker) for style in line_styles_of(names).values()}) == len(names)
    assert line_styles_of(["mine"])["mine"] == line_styles_of(["mine", "CGHash", "ITQ"])["mine"]


# --- tables


def test_summary_has_a_line_for_each_mean():
    rows = list(csv.DictReader(io.StringIO(summary_csv(Measured(grid({"LSH": 0.5}))))))
    assert len(rows) == 2 * 4  # lengths × criteria
    row = next(row for row in rows if (row["bits"], row["criterion"]) == ("16", "knn_error"))
    assert float(row["mean"]) == pytest.approx(0.445)
    assert float(row["deviation"]) == pytest.approx(0.01 / math.sqrt(2))
    assert row["n_splits"] == "2"


def test_tables_leave_empty_what_is_not_known():
    measured = Measured([cell(HOSTILE, criteria={"map": 0.5, "knn_error": math.nan}), failed("LSH")])
    (summary,) = csv.DictReader(io.StringIO(summary_csv(measured)))
    assert (summary["method"], summary["criterion"], summary["deviation"]) == (HOSTILE, "map", "")
    rows = {row["method"]: row for row in csv.DictReader(io.StringIO(cells_csv(measured)))}
    assert (rows["LSH"]["status"], rows["LSH"]["map"], rows["LSH"]["error"]) == (
        "failed",
        "",
        "MemoryError: <too much>",
    )
    assert rows[HOSTILE]["knn_error"] == ""


def test_markdown_marks_the_best_codes_and_never_the_reference():
    results = grid({"LSH": 0.3, "CGHash": 0.6, "Euclidean": 0.9, "a|b": 0.2})
    lines = markdown_table(results).splitlines()
    assert lines[2] == "| ISOLET | CGHash | 16 | **0.655 ± 0.007** | **0.655 ± 0.007** | **0.345 ± 0.007** |"
    assert lines[4].startswith("| ISOLET | a\\|b | 16 | 0.255")
    assert lines[5].startswith("| ISOLET | Euclidean | – | 0.955")
    assert len(lines) == 6


def test_quality_table_underlines_what_is_within_one_deviation_of_the_best():
    values = {"A": (0.5, 0.7), "B": (0.55, 0.6), "C": (0.1, 0.2)}
    results = [cell(m, split=s, quality=q) for m, qs in values.items() for s, q in enumerate(qs)]
    rows = re.findall(r"<tr>.*?</tr>", quality_table(Measured(results), "isolet", "seen"))
    assert [(row.count('"best"'), row.count('"close"')) for row in rows[1:]] == [(3, 0), (0, 3), (0, 0)]


def test_costs_are_of_one_item_and_say_where_bits_are_fewer(outline_of):
    table = cost_table(Measured([cell("LDAHash", bits=60, n_bits=9, bytes=2, seconds_choice=4.25)]), "isolet", "seen")
    text = "".join(outline_of(table).words).split("\n")
    assert "LDAHash9 of 6021.504.252.00100" in text  # 0.002 s for 1000 items: 2 µs


# --- page


def whole():
    """Everything at once: protocols, K, pictures, the reference, failures, hostile names, a data set of one split."""
    sets = [grid({"CGHash": 0.6, "Euclidean": 0.45, HOSTILE: 0.5, **TEN}, protocol=p) for p in ("seen", "unseen")]
    return [
        *itertools.chain(*sets),
        *grid({f"CGHash K={k}": 0.3 + 0.01 * k for k in (3, 10, 20, 30)}, dataset="scene15"),
        cell("CGHash", dataset="../x", pictures=pictures(9), fit=FIT),
        cell("CGHash", dataset="x<b>", fit={"message": "", "weights": []}),
        cell("LSH", dataset="../x", criteria={"map": 0.2, "top": 0.1, "knn_error": math.nan, "ndcg": 0.2}),
        cell("LSH", dataset="x<b>", pictures=pictures(2)),
        failed("BRE", bits=32),
        failed(HOSTILE, split=7, dataset="usps"),
    ]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return write_report(whole(), tmp_path_factory.mktemp("report") / "new", 'A "title" & <more>')


def test_page_is_well_formed_and_speaks(report, outline_of):
    outline = outline_of(report.read_text())
    ids = [attrs["id"] for _, attrs in outline.seen if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = {attrs["aria-labelledby"] for _, attrs in outline.seen if "aria-labelledby" in attrs}
    assert named <= set(ids)
    assert all(attrs["alt"] for tag, attrs in outline.seen if tag == "img")
    assert 'A "title" & <more>' in "".join(outline.words)


def test_page_refers_to_its_own_files_alone(report, outline_of):
    page = report.read_text()
    assert re.findall(r"(?:https?:)?//[a-z]", re.sub(r"base64,[\w+/=]+", "", page)) == []
    outline = outline_of(page)
    ids = {attrs.get("id") for _, attrs in outline.seen}
    targets = [attrs[key] for _, attrs in outline.seen for key in ("src", "href") if key in attrs]
    for target in targets:
        if target.startswith("#"):
            assert target[1:] in ids
        elif not target.startswith("data:image/png;base64,"):
            assert (report.parent / target).is_file()
            assert (report.parent / target).resolve().is_relative_to(report.parent.resolve())
    files = {f"figures/{path.name}" for path in (report.parent / "figures").iterdir()}
    assert files <= set(targets)
    assert set(re.findall(r"url\(#([^)]+)\)", page)) <= ids


def test_hostile_names_stay_text(report, outline_of):
    outline = outline_of(report.read_text())
    assert not any(tag == "script" for tag, _ in outline.seen)
    assert any(HOSTILE in words for words in outline.words)
    assert all(re.fullmatch(r"[a-z0-9-]+\.(png|svg)", path.name) for path in (report.parent / "figures").iterdir())
    assert {path.name for path in report.parent.parent.iterdir()} == {"new"}


def test_figures_are_images(report):
    files = sorted((report.parent / "figures").iterdir())
    # three for each of 4 data sets and protocols and for K, without the errors that nobody has; slope; bytes; fits
    assert len(files) == 2 * (3 * 4 + 3 + 1 + 1 + 3)
    for path in files:
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
            assert not {"matplotlib.org", "mathdefault"} & set(re.findall(r"[\w.]+", path.read_text()))
        else:
            assert path.read_bytes().startswith(b"\x89PNG")


def test_every_colour_of_the_page_has_a_light_and_a_dark_value(report):
    page = report.read_text()
    style, body = page.split("</style>", 1)
    used = set(re.findall(r"var\(--([a-z0-9]+)\)", body))
    assert len(used) > 12
    light = set(
        re.findall(
            r"--([a-z0-9]+):", re.sub(r"@media \(prefers-color-scheme: dark\) \{.*?\}\s*\}", "", style, flags=re.S)
        )
    )
    dark = {
        name
        for part in re.findall(r"dark\) \{(.*?\})\s", style, flags=re.S)
        for name in re.findall(r"--([a-z0-9]+):", part)
    }
    assert used <= light
    assert used <= dark
    assert not any(style.colour in body for style in KNOWN.values())


def test_sections_tell_of_failures_circumstances_and_examples(report, outline_of):
    text = "".join(outline_of(report.read_text()).words)
    assert "MemoryError: <too much>" in text
    assert "2 failed" in text
    assert "commit: abc1234" in text
    assert "numpy version: 2.0" in text
    assert "9 of 10 right, 8 bits" in text
    assert "One split, so no deviations" in text


def test_fits_are_shown_with_bound_triplets_weights_and_masks(report, outline_of):
    page = report.read_text()
    text = "".join(outline_of(page).words)
    for words in ("How the fits went", "<all> learned", "learned in 1.5 s", "satisfied triplets", "1 of 2"):
        assert words in text
    assert page.count("What each pixel adds") == 1
    assert ">0.2</text>" in page  # of the logarithmic axis
    assert len(list((report.parent / "figures").glob("*objective*"))) == 2


def test_the_same_results_in_any_order_give_the_same_bytes(tmp_path):
    some = [*grid({"CGHash": 0.6, "Euclidean": 0.45, HOSTILE: 0.5}), cell("CGHash", dataset="../x", fit=FIT)]
    reports = [write_report(results, tmp_path / name) for name, results in (("a", some), ("b", some[::-1]))]
    first, second = ({p.relative_to(r.parent): p.read_bytes() for p in r.parent.rglob("*.*")} for r in reports)
    assert len(first) > 8
    assert first == second


def test_a_report_in_the_folder_of_another_leaves_none_of_its_figures(tmp_path):
    usps, isolet = (grid({"CGHash": 0.6, "LSH": 0.3}, dataset=name) for name in ("usps", "isolet"))
    write_report(usps + isolet, tmp_path)
    figures = tmp_path / "figures"
    assert any("isolet" in path.name for path in figures.iterdir())
    (figures / "isolet-by-hand.png").write_bytes(b"mine")
    page = write_report(usps, tmp_path).read_text()
    linked = set(re.findall(r'href="figures/([^"]+)"', page))
    assert {path.name for path in figures.iterdir()} == linked | {"isolet-by-hand.png"}
    assert linked
    assert not any("isolet" in name for name in linked)


def test_quality_over_bytes_says_where_codes_pass_the_floats(tmp_path):
    floats = [cell("Euclidean", dataset="newsgroups20", bits=b, bytes=1536, quality=0.5) for b in (32, 64)]
    codes = [cell("CGHash", dataset="newsgroups20", bits=b, quality=q) for b, q in ((32, 0.4), (64, 0.6))]
    page = write_report(floats + codes, tmp_path).read_text()
    assert "8 bytes of CGHash rank at least as well as the vectors, 1536 bytes" in page
    assert (tmp_path / "figures" / "quality-over-bytes.png").is_file()
    assert page.index('id="bytes"') < page.index('id="data-sets"')


def test_no_headline_where_codes_stay_below_the_floats(tmp_path):
    results = [cell("Euclidean", bytes=1536, quality=0.5), cell("CGHash", quality=0.4)]
    assert "at least as well" not in write_report(results, tmp_path).read_text()


def test_results_that_all_failed_make_a_page_too(tmp_path, outline_of):
    page = write_report([failed("LSH"), failed("LSH", split=1)], tmp_path).read_text()
    assert "0 of 2 cells were measured; 2 failed" in "".join(outline_of(page).words)


def test_pictures_that_are_none_are_left_to_their_labels():
    bad = pictures(10)
    bad["query"][0]["png"] = '"><script>'
    section = examples_section(Measured([cell("CGHash", pictures=bad)]))
    assert "<script" not in section
    assert "Query: 3" in section


@pytest.mark.parametrize(
    "malformed",
    [
        None,
        [],
        {"query": [{"label": "3"}]},
        {"query": [{"label": "3"}], "nearest": []},
        {"query": [{"label": "3"}] * 2, "nearest": [[]]},
        {"query": "3", "nearest": None},
        {"query": [3], "nearest": [[3]]},
        {"query": [{"label": "3"}], "nearest": [[{"label": "3"}]]},
    ],
)
def test_malformed_pictures_are_left_out(malformed):
    measured = Measured([cell("CGHash", pictures=malformed), cell("LSH", pictures=pictures(4))])
    assert "4 of 10 right" in examples_section(Measured(measured.cells[1:]))
    examples_section(measured)
    assert claims(measured)[5].verdict == UNMEASURED


def test_quality_over_bytes_is_of_items_not_trained_on_where_there_are_some(tmp_path):
    results = [
        cell(m, dataset="newsgroups20", protocol=p, bits=b, quality=q, bytes=1536 if m == "Euclidean" else b // 8)
        for p, better in (("heldout", 0.0), ("seen", 0.25))
        for m, q in (("Euclidean", 0.5), ("CGHash", 0.45 + better))
        for b in (32, 64)
    ]
    page = write_report(results, tmp_path).read_text()
    assert "at least as well" not in page  # as they are on items that were trained on
    assert "20 Newsgroups, items not trained on" in page
    assert 'id="heldout">Items not trained on' in page
    assert (tmp_path / "figures" / "newsgroups20-heldout-top.png").is_file()
    assert "0.450" in markdown_table(results, "heldout")


def test_a_page_of_items_not_trained_on_alone_says_nothing_of_the_paper():
    assert paper_and_here(Measured(grid({"CGHash": 0.6, **TEN}, protocol="heldout"))) == ""


def test_tables_of_the_documents_follow_the_page(monkeypatch):
    """Ranks, and quality by bytes, as benchmarks/lab_tables.py writes them."""
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "benchmarks"))
    lab_tables = importlib.import_module("lab_tables")
    lines = lab_tables.ranks(grid({"CGHash": 0.7, "CGHash tuned": 0.8, "SDH": 0.75})).splitlines()
    assert lines[0] == "| method | all | mAP | top-50 | 3-NN error | rankings |"
    assert lines[2] == "| CGHash tuned | **1.00** | **1.00** | **1.00** | **1.00** | 3 of 3 |"
    assert {lines[3][:16], lines[4][:16]} == {"| CGHash | 2.00 ", "| SDH | 2.00 | 2"}
    assert "ranked one at a time" in lines[-1]
    results = [cell("LSH", protocol=p, quality=q) for p, q in (("heldout", 0.25), ("seen", 0.75))]
    assert "| LSH | 0.250 |" in lab_tables.bytes_an_item(results)
    assert "| LSH | 0.750 |" in lab_tables.bytes_an_item(results[1:])


def test_cells_that_are_missing_are_counted():
    results = [cell("A", split=0), cell("A", split=1), cell("B", split=0)]  # B lacks split 1
    assert "3 of 4 cells were measured; 0 failed; 1 are not in the results." in cells_section(Measured(results))


@pytest.mark.parametrize("results", [[], [{"dataset": "x"}], [failed("A", bits="many")]])
def test_wrong_results_are_named(results, tmp_path):
    with pytest.raises(InvalidInputError, match="results must"):
        write_report(results, tmp_path)


@given(st.text(max_size=80))
def test_file_names_are_plain(text):
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", file_name(text))
