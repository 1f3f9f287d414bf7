"""What is kept of some cells: the nearest items, pictures of them, and what linear bits look at."""

from __future__ import annotations

import base64
import io

import numpy as np
from PIL import Image

from cghash import CGHash
from cghash.lab.datasets import load
from cghash.lab.experiments import cell_details
from cghash.lab.experiments.protocol import split_items


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(png))))


def digits():
    data = load("digits")
    split = split_items(data.y, "seen", 0, None, 100, "cghash")
    model = CGHash(8, random_state=0).fit(data.X[split.train], data.y[split.train])
    return data, split, model


def test_nearest_items_are_by_distance_then_by_place():
    data, split, model = digits()
    found = cell_details.nearest_by_codes(model, data.X, split)(split.queries[:5], 7)
    distances = model.distances(data.X[split.queries[:5]], model.encode(data.X[split.database]))
    for rows, line in zip(found, distances, strict=True):
        expected = sorted(range(len(line)), key=lambda place: (line[place], place))[:7]
        assert rows.tolist() == split.database[expected].tolist()


def test_pictures_hold_the_items_and_say_which_are_right():
    data, split, model = digits()
    shown = cell_details.retrieved_pictures(
        data, split, cell_details.nearest_by_codes(model, data.X, split), every=True
    )
    query, nearest = shown["query"][3], shown["nearest"][3]
    grey = data.pictures(split.queries[3:4])[0]
    np.testing.assert_array_equal(pixels(query["png"]), grey.repeat(4, axis=0).repeat(4, axis=1))
    assert [item["right"] for item in nearest] == [item["label"] == query["label"] for item in nearest]


def test_masks_are_blue_where_a_pixel_pushes_to_1_and_orange_where_to_0():
    effects = np.array([[0.0, 1.0, -2.0, 0.0, 0.5, 0.0], [3.0, 0.0, 0.0, 0.0, 0.0, -3.0]])
    first, second = map(pixels, cell_details._masks(effects, np.array([0.1, 0.7]), (2, 3)))
    assert first.shape == (2, 3, 4)
    assert first[0, 0].tolist() == [*cell_details.POSITIVE, 255]  # the heavier bit comes first
    assert first[1, 2].tolist() == [*cell_details.NEGATIVE, 255]
    assert second[0, 1].tolist() == [*cell_details.POSITIVE, 127]
    assert second[0, 2].tolist() == [*cell_details.NEGATIVE, 255]
    assert second[0, 0, 3] == 0


def test_without_pillow_a_fit_is_recorded_without_masks(monkeypatch):
    data, split, model = digits()
    assert len(cell_details.fit_record(model, data, split.train)["fit"]["masks"]) == 8
    monkeypatch.setattr(cell_details, "find_spec", lambda name: None)
    assert "masks" not in cell_details.fit_record(model, data, split.train)["fit"]
