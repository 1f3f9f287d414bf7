"""Experiments as TOML files say them."""

import pytest

from cghash.exceptions import InvalidInputError
from cghash.lab.experiments.methods import EUCLIDEAN, NAMES, estimator_of
from cghash.lab.experiments.plan_files import built_in, part_of, read_experiment, source_of

MINE = """
splits = 2
bits = [16, 8]
[[datasets]]
name = "digits"
train = 300
[[methods]]
name = "LSH"
[[methods]]
name = "steep"
estimator = "CGHash"
parameters = { n_neighbors = 10 }
on = { digits = { n_neighbors = 5 } }
"""


@pytest.fixture
def mine(tmp_path):
    def write(text):
        path = tmp_path / "mine.toml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize("name", built_in())
def test_every_experiment_that_comes_along_names_methods_and_parameters_that_exist(name):
    experiment = read_experiment(name)
    for method in experiment.methods:
        if method.estimator == EUCLIDEAN:
            continue
        for dataset in experiment.datasets:
            searched = {key: values[0] for key, values in method.search.items()}
            estimator_of(method.estimator, method.parameters_on(dataset.name) | searched, 8, 0, 1)


def test_the_paper_s_experiment_has_its_methods_data_sets_and_lengths():
    paper = read_experiment("paper")
    ten = {"LSH", "SSC", "LSI", "LCH", "SPH", "STH", "AGH", "BRE", "SPLH", "ITQ"}
    assert {method.name for method in paper.methods} == ten | {"CGHash", "CGHash tuned", "ITQ-CCA"}
    assert {data.name for data in paper.datasets} == {"isolet", "scene15", "mnist", "labelme", "usps", "pascal07"}
    assert paper.bits == (10, 20, 30, 40, 50, 60)
    assert (paper.splits, paper.top, paper.neighbors) == (5, 50, 3)
    ours = paper.methods[0]
    assert ours.parameters_on("scene15")["n_neighbors"] == 30
    assert ours.parameters_on("usps")["n_neighbors"] == 10


def test_tasks_are_all_combinations_a_split_at_a_time(mine):
    experiment = read_experiment(mine(MINE))
    tasks = list(experiment.tasks())
    assert [(task.split, task.method.name) for task in tasks] == [(0, "LSH"), (0, "steep"), (1, "LSH"), (1, "steep")]
    assert experiment.bits == (8, 16)
    assert experiment.methods[1].parameters_on("digits") == {"n_neighbors": 5}
    assert experiment.methods[1].parameters_on("usps") == {"n_neighbors": 10}


def test_a_method_may_have_some_of_the_lengths_alone(mine):
    experiment = read_experiment(mine(MINE.replace('name = "LSH"', 'name = "LSH"\nbits = [16]')))
    assert [experiment.bits_of(task) for task in experiment.tasks()][:2] == [[16], [8, 16]]


def test_own_items_are_named_by_their_path(mine):
    experiment = read_experiment(
        mine(MINE.replace('name = "digits"', 'path = "folder/own.csv"\nlabel_column = "kind"'))
    )
    assert [(data.name, data.path, data.label_column) for data in experiment.datasets] == [
        ("own", "folder/own.csv", "kind")
    ]


def test_part_of_an_experiment_may_name_own_data_and_other_methods():
    part = part_of(
        read_experiment("paper"), ["usps", "folder/own.NPZ", "digits"], ["CGHash", "KSH"], [32], 1, ["unseen"]
    )
    assert [(data.name, data.path) for data in part.datasets] == [
        ("usps", None),
        ("own", "folder/own.NPZ"),
        ("digits", None),
    ]
    assert [method.estimator for method in part.methods] == ["CGHash", "KSH"]
    assert (part.bits, part.splits, part.protocols) == ((32,), 1, ("unseen",))


def test_shown_lengths_are_those_of_the_plan_unless_others_are_asked_for(mine):
    experiment = read_experiment(mine("shown = [8]\nfirst_split = 3" + MINE))
    assert (experiment.shown, part_of(experiment, splits=1).shown, part_of(experiment, bits=[16]).shown) == (
        (8,),
        (8,),
        (),
    )
    assert [task.split for task in experiment.tasks()] == [3, 3, 4, 4]


def test_an_experiment_like_another_changes_only_what_it_says(mine):
    experiment = read_experiment(mine('like = "paper"\nsplits = 1\n'))
    paper = read_experiment("paper")
    assert experiment.splits == 1
    assert experiment.methods == paper.methods
    assert experiment.datasets == paper.datasets


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (MINE.replace("splits = 2", "splits = 0"), "splits must be a whole number of at least 1, got 0"),
        (MINE.replace("[16, 8]", "[16, 0]"), "bits must be a whole number of at least 1, got 0"),
        (MINE.replace("train = 300", "trian = 300"), "digits: keys must be among name, path.*, got name, trian"),
        (MINE.replace("train = 300", 'scaling = "log"'), "scaling of digits must be one of"),
        (MINE.replace('"steep"', '"LSH"'), "names must differ, got LSH, LSH"),
        (MINE.replace("splits = 2", 'protocols = ["other"]'), "protocol must be one of"),
        ('validation = { criterion = "luck" }' + MINE, "validation.criterion must be one of"),
        ("splits = 2", r"datasets must be one or more tables \[\[datasets\]\]"),
        (MINE.replace("[16, 8]", "8"), "bits must be a list, got 8"),
        (MINE.replace("on = { digits", "on = { digitz"), "steep: on must name data sets, digits, got digitz"),
        (MINE + "search = { C = 1e-3 }", "search of C must be a list, got 0.001"),
        (MINE + "search = { C = [] }", "search of steep must have one value or more"),
        (MINE + "bits = [12]", r"bits of steep must be among \(8, 16\)"),
        (MINE.replace("{ n_neighbors = 10 }", "{ depth = 10 }"), "parameters of CGHash must be among"),
        (MINE.replace('"CGHash"', '"CGHsh"'), "estimator must be one of"),
        ("validation = 3" + MINE, r"\[validation\]: keys must be among"),
        (MINE.replace('name = "digits"', ""), "each of its data sets and methods must have a name"),
        ("splits = = 2", "must be a TOML file"),
        ('like = "nothing"', "like must be one of"),
        ("shown = [12]" + MINE, r"shown must be among the bits \(16, 8\), got \(12,\)"),
        ("first_split = -1" + MINE, "first_split must be a whole number of at least 0, got -1"),
        ("first_split = 4294967295" + MINE, "first_split must be below 4294967296 with all splits"),
        (MINE.replace("train = 300", 'drawn_by = "luck"'), "drawn_by of digits must be one of"),
        (MINE + 'pictures = "some"', 'steep: pictures must be true, false or "all"'),
    ],
)
def test_mistakes_in_a_file_are_named(mine, text, says):
    with pytest.raises(InvalidInputError, match=says):
        read_experiment(mine(text))


def test_unknown_names_are_answered_with_the_known_ones():
    with pytest.raises(InvalidInputError, match=r"one of .*paper.* or a \.toml file, got 'papr'"):
        source_of("papr")
    with pytest.raises(InvalidInputError, match=r"dataset must be one of isolet.*, got 'iris'"):
        part_of(read_experiment("paper"), datasets=["iris"])
    with pytest.raises(InvalidInputError, match=r"method must be one of CGHash.*, got 'XYZ'"):
        part_of(read_experiment("paper"), methods=["XYZ"])
    with pytest.raises(InvalidInputError, match="estimator must be one of"):
        estimator_of("XYZ", {}, 8, 0, 1)
    with pytest.raises(InvalidInputError, match="parameters of LSH must be among center, got depth"):
        estimator_of("LSH", {"depth": 3}, 8, 0, 1)
    assert "CGHash" in NAMES


@pytest.mark.parametrize(
    "changed",
    [
        ("parameters = { n_neighbors = 10 }", "parameters = 1.5"),
        ("on = { digits = { n_neighbors = 5 } }", 'on = { digits = "5" }'),
        ("on = { digits = { n_neighbors = 5 } }", "on = 5"),
        ('estimator = "CGHash"', "estimator = 1e400"),
        ("bits = [16, 8]", "bits = []"),
        ("bits = [16, 8]", "bits = [[16]]"),
        ("bits = [16, 8]", f"bits = [{'9' * 100}]"),
        ("splits = 2", f"splits = {'9' * 100}"),
        ("splits = 2", f"splits = {'9' * 5000}"),
        ("splits = 2", f"splits = {'[' * 5000}{']' * 5000}"),
        ('name = "LSH"', 'name = "LSH"\nbits = [[8]]'),
        ('name = "LSH"', 'name = "LSH"\nsearch = 5'),
        ('name = "LSH"', 'name = "LSH"\nlabels = "no"'),
        ("train = 300", "path = 300"),
        ("train = 300", f"train = 0x{'f' * 5000}"),
        ("train = 300", f"scaling = 0x{'f' * 5000}"),
        ("bits = [16, 8]", f"bits = [0x{'f' * 5000}]"),
        ("splits = 2", f"splits = 0x{'f' * 5000}"),
        ("splits = 2", f"top = 0x{'f' * 5000}"),
        ("splits = 2", f"neighbors = 0x{'f' * 5000}"),
        ('name = "LSH"', f'name = "LSH"\nsearch = {{n = [0x{"f" * 5000}]}}'),
        ('name = "LSH"', 'name = "LSH"\nbits = [8.0]'),
    ],
    ids=lambda changed: changed[1][:30],
)
def test_settings_of_another_type_or_size_are_refused(mine, changed):
    assert MINE.replace(*changed) != MINE
    with pytest.raises(InvalidInputError):
        read_experiment(mine(MINE.replace(*changed)))


@pytest.mark.parametrize("key", ["n_bits = 4", "random_state = 1", "n_jobs = 99", 'checkpoint = "FILE"'])
@pytest.mark.parametrize("at", ["parameters = {{ {} }}", "on = {{ digits = {{ {} }} }}"])
def test_what_the_experiment_decides_is_no_parameter_of_a_plan(mine, tmp_path, key, at):
    key = key.replace("FILE", str(tmp_path / "planted"))
    old = "parameters = { n_neighbors = 10 }" if at.startswith("par") else "on = { digits = { n_neighbors = 5 } }"
    with pytest.raises(InvalidInputError, match=f"got {key.split()[0]}; the experiment's bits, splits and folder"):
        read_experiment(mine(MINE.replace(old, at.format(key))))
    assert not (tmp_path / "planted").exists()
