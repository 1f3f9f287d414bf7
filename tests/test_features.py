"""Image features by their defining properties: gratings, symmetries, hand-worked edges and counts."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from cghash.exceptions import FormatError, InvalidInputError
from cghash.lab.features import BagOfWords, dense_sift, gist, read_grey, thumbnails, windows
from cghash.lab.features.bag_of_words import WINDOWS
from cghash.lab.features.parallel import each

FOLDER = os.environ.get("CGHASH_DATA")


def texture(side=64, seed=0):
    """Smooth noise that uses most grey levels."""
    from scipy.ndimage import gaussian_filter

    noise = gaussian_filter(np.random.default_rng(seed).normal(size=(side, side)), 1.5)
    return np.interp(noise, (noise.min(), noise.max()), (20, 230)).astype(np.uint8)


def grating(angle, frequency, side=128):
    """Stripes whose wave vector has this angle (x right, y down) and this many cycles a pixel."""
    y, x = np.indices((side, side))
    wave = np.cos(2 * np.pi * frequency * (x * np.cos(angle) + y * np.sin(angle)))
    return np.rint(127.5 + 100 * wave).astype(np.uint8)


def energies(image, size=128):
    return gist([image], size=size).reshape(4, 8, 4, 4)


@pytest.mark.parametrize("scale", range(4))
@pytest.mark.parametrize("orientation", range(8))
def test_gist_of_a_grating_peaks_at_its_scale_and_orientation(scale, orientation):
    found = energies(grating(np.pi * orientation / 8, 0.3 / 1.85**scale)).sum(axis=(2, 3))
    assert np.unravel_index(found.argmax(), found.shape) == (scale, orientation)


def test_gist_says_in_which_cell_the_stripes_are():
    image = np.full((128, 128), 100, dtype=np.uint8)
    image[32:64, 96:] = grating(0, 0.16, 32)
    cells = energies(image)[1, 0]
    assert np.unravel_index(cells.argmax(), cells.shape) == (1, 3)


def test_gist_of_a_mirrored_image_is_the_mirrored_gist():
    image = texture()
    found, mirrored = energies(image, 64), energies(image[:, ::-1], 64)
    opposite = -np.arange(8) % 8  # direction θ becomes π − θ
    np.testing.assert_allclose(mirrored, found[:, opposite, :, ::-1], rtol=1e-3, atol=1e-5)


def test_gist_of_a_transposed_image_is_the_transposed_gist():
    image = texture(seed=1)
    found, turned = energies(image, 64), energies(image.T, 64)
    other = (4 - np.arange(8)) % 8  # direction θ becomes π/2 − θ
    np.testing.assert_allclose(turned, found[:, other].transpose(0, 1, 3, 2), rtol=1e-3, atol=1e-5)


def test_gist_does_not_change_when_all_light_is_doubled():
    dim = texture() // 2  # at most 115
    bright = 2 * dim + 1  # log(1 + f) rises by log 2 everywhere
    np.testing.assert_allclose(gist([bright], size=64), gist([dim], size=64), rtol=1e-3, atol=1e-5)


def test_gist_keeps_its_direction_when_light_is_added():
    image = texture() // 2 + 60
    reference, brighter = gist([image, image + 30], size=64)
    assert reference @ brighter > 0.999 * np.linalg.norm(reference) * np.linalg.norm(brighter)


def test_gist_of_a_flat_image_is_nothing():
    assert np.abs(gist([np.full((40, 40), 200, dtype=np.uint8)], size=32)).max() < 1e-4


def test_features_do_not_depend_on_threads_or_on_the_other_images():
    images = [texture(48, seed) for seed in range(9)]
    alone = np.concatenate([gist([image], size=32) for image in images])
    words = BagOfWords(6, n_jobs=1).fit(images)
    for n_jobs in 1, 2, 5, -1:
        assert np.array_equal(gist(images, size=32, n_jobs=n_jobs), alone)
        other = BagOfWords(6, n_jobs=n_jobs).fit(images)
        assert np.array_equal(other.codebook_, words.codebook_)
        assert np.array_equal(other.transform(images), words.transform(images))


def test_sift_of_a_horizontal_edge_points_down():
    image = np.zeros((16, 16), dtype=np.uint8)
    image[8:] = 100  # bright below: grey rises in the direction of y, π/2, bin 2
    descriptors, centres = dense_sift(image)
    assert centres.tolist() == [[0.5, 0.5]]
    cells = descriptors.reshape(4, 4, 8)
    assert cells[..., 2].sum() == pytest.approx(cells.sum())
    # gradient rows 7 and 8, cell centres at 1.5, 5.5, 9.5, 13.5: nearness 0 to the outer cells, 5/8 + 3/8 to the inner
    assert cells[[0, 3]].sum() == 0
    np.testing.assert_allclose(cells[1], cells[2], rtol=1e-5)


def test_sift_cell_sums_are_those_worked_pixel_by_pixel():
    image = texture(16, 3)
    y, x = np.gradient(image.astype(float))
    expected = np.zeros((4, 4, 8))
    for i in range(16):
        for j in range(16):
            place = np.arctan2(y[i, j], x[i, j]) / (2 * np.pi) * 8 % 8
            for k in range(8):
                near = max(0, 1 - min(abs(place - k), 8 - abs(place - k)))
                for r in range(4):
                    for c in range(4):
                        weight = max(0, 1 - abs(i - 4 * r - 1.5) / 4) * max(0, 1 - abs(j - 4 * c - 1.5) / 4)
                        expected[r, c, k] += near * weight * np.hypot(y[i, j], x[i, j])
    expected = np.minimum(expected / np.linalg.norm(expected), 0.2)
    expected /= np.linalg.norm(expected)
    np.testing.assert_allclose(dense_sift(image)[0][0], expected.ravel(), atol=1e-5)


def test_sift_of_a_turned_image_is_the_turned_descriptor():
    image = texture(16, 5)
    found = dense_sift(image)[0].reshape(4, 4, 8)
    turned = dense_sift(np.rot90(image))[0].reshape(4, 4, 8)  # against the clock: direction θ becomes θ − π/2
    np.testing.assert_allclose(turned, np.roll(np.rot90(found), -2, axis=2), atol=1e-5)


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 9))
def test_sift_descriptors_have_length_one_or_nothing_in_them(height, width, seed):
    image = np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)
    descriptors, centres = dense_sift(image)
    assert len(centres) == np.prod([(max(side, 16) - 16) // 8 + 1 for side in (height, width)])
    assert ((centres > 0) & (centres < 1)).all()
    lengths = np.linalg.norm(descriptors, axis=1)
    assert (np.isclose(lengths, 1, atol=1e-5) | (lengths == 0)).all()
    assert dense_sift(np.full_like(image, 9))[0].max() == 0


def test_windows_cover_every_point_as_often_as_their_sizes_say():
    assert windows().shape == (WINDOWS, 4)
    heights, widths = windows()[:, 2] - windows()[:, 0], windows()[:, 3] - windows()[:, 1]
    assert sorted((heights * widths).tolist()) == [1 / 16] * 25 + [1 / 4] * 5 + [1]


def test_words_of_a_window_sum_to_its_patches():
    images = [texture(80, seed)[:, :64] for seed in range(4)]
    counts = BagOfWords(7).fit(images).transform(images).reshape(4, WINDOWS, 7)
    _, centres = dense_sift(images[0])
    for window, (top, left, bottom, right) in enumerate(windows()):
        inside = [top <= y < bottom and left <= x < right for y, x in centres]
        assert (counts[:, window].sum(axis=1) == sum(inside)).all()
    np.testing.assert_array_equal(counts[:, 1:5].sum(axis=1), counts[:, 0])
    np.testing.assert_array_equal(counts[:, 6:22].sum(axis=1), counts[:, 0])


def test_words_are_those_of_the_nearest_centre():
    images = [texture(40, seed) for seed in range(3)]
    model = BagOfWords(5).fit(images)
    descriptors, _ = dense_sift(images[1])
    word = [int(np.argmin([np.linalg.norm(d - c) for c in model.codebook_])) for d in descriptors]
    assert model.transform(images[1:2])[0, :5].tolist() == np.bincount(word, minlength=5).tolist()


def test_dictionary_depends_on_its_seed_and_on_how_much_it_sees():
    images = [texture(64, seed) for seed in range(4)]
    first = BagOfWords(6).fit(images).codebook_
    assert not np.array_equal(first, BagOfWords(6, random_state=1).fit(images).codebook_)
    assert not np.array_equal(first, BagOfWords(6, n_descriptors=40).fit(images).codebook_)


def test_too_few_patches_for_the_dictionary_are_an_error():
    with pytest.raises(InvalidInputError, match="at least n_words=200 descriptors, got 1 from 1 images"):
        BagOfWords().fit([texture(16)])
    with pytest.raises(InvalidInputError, match="fitted"):
        BagOfWords().transform([texture(16)])


@pytest.mark.parametrize("size", [2, 30, 64.0, True])
def test_size_that_the_grid_does_not_divide_is_an_error(size):
    with pytest.raises(InvalidInputError, match="size must be"):
        gist([texture()], size=size)


@pytest.mark.parametrize("image", [np.zeros((3, 3, 3), np.uint8), np.zeros((3, 3)), np.zeros((0, 3), np.uint8)])
def test_arrays_that_are_not_grey_images_are_errors(image):
    with pytest.raises(InvalidInputError, match="images must be paths or"):
        gist([image])


def test_files_give_the_features_of_their_pixels(tmp_path):
    image = texture(64)
    Image.fromarray(image).save(tmp_path / "a.png")
    assert np.array_equal(read_grey(tmp_path / "a.png"), image)
    assert np.array_equal(gist([tmp_path / "a.png"], size=64), gist([image], size=64))
    assert np.array_equal(thumbnails([tmp_path / "a.png"], 64)[0], image)
    assert read_grey(tmp_path / "a.png", largest=32).shape == (32, 32)


def test_colour_images_are_read_as_luma(tmp_path):
    Image.new("RGB", (20, 10), (255, 0, 0)).save(tmp_path / "red.png")
    assert np.unique(read_grey(tmp_path / "red.png")).tolist() == [76]  # 0.299 · 255


def test_truncated_and_foreign_images_are_errors_that_name_the_file(tmp_path):
    Image.fromarray(texture(64)).save(tmp_path / "whole.jpg")
    content = (tmp_path / "whole.jpg").read_bytes()
    for name, data in ("cut.jpg", content[: len(content) // 2]), ("text.jpg", b"not an image"), ("empty.jpg", b""):
        (tmp_path / name).write_bytes(data)
        with pytest.raises(FormatError, match=name):
            gist([tmp_path / "whole.jpg", tmp_path / name], n_jobs=2)
    with pytest.raises(FormatError, match="no such file"):
        read_grey(tmp_path / "nothing.jpg")


def test_image_that_claims_too_many_pixels_is_not_decoded(tmp_path):
    # a PGM header that claims 10^10 pixels, and no pixels
    (tmp_path / "bomb.pgm").write_bytes(b"P5\n100000 100000\n255\n")
    with pytest.raises(FormatError, match="bomb"):
        read_grey(tmp_path / "bomb.pgm")


@given(
    st.binary(max_size=300), st.sampled_from([b"", b"\xff\xd8\xff\xe0", b"\x89PNG\r\n\x1a\n", b"P5\n2 2\n255\n", b"BM"])
)
def test_random_bytes_are_an_image_or_a_format_error(tmp_path_factory, data, magic):
    path = tmp_path_factory.getbasetemp() / "random.img"
    path.write_bytes(magic + data)
    try:
        image = read_grey(path)
    except FormatError:
        return
    assert image.ndim == 2
    assert image.dtype == np.uint8


def test_answers_come_in_order_and_progress_is_told():
    told = []
    assert list(each(lambda i: i * i, range(20), 3, lambda done, n: told.append((done, n)))) == [
        i * i for i in range(20)
    ]
    assert told == [(i, 20) for i in range(1, 21)]


def test_error_in_one_item_stops_the_others():
    done = []

    def work(i):
        done.append(i)
        if i == 3:
            raise ValueError("three")

    with pytest.raises(ValueError, match="three"):
        list(each(work, range(10_000), 2))
    assert len(done) < 100


@pytest.mark.skipif(not FOLDER, reason="CGHASH_DATA names no folder with the data sets")
def test_gist_of_small_scenes_tells_their_classes():
    with np.load(Path(FOLDER) / "scene15_thumbs64.npz") as arrays:
        images = arrays["images"]
    with np.load(Path(FOLDER) / "scene15_gist512.npz") as arrays:
        y = arrays["y"]
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:900])
    X = gist(images[rows], size=64)
    distances = ((X[:300, None] - X[300:]) ** 2).sum(axis=2)
    accuracy = np.mean(y[rows][300:][distances.argmin(axis=1)] == y[rows][:300])
    assert accuracy > 0.3  # 1/15 by chance
