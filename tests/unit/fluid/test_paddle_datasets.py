"""`paddle.dataset`: texts and ratings in the formats of their archives, in small."""

from __future__ import annotations

import gzip
import io
import pickle
import re
import tarfile
import zipfile
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from psrt.core.errors import DataError
from psrt.fluid.paddle.dataset import cifar, common, conll05, imdb, movielens, wmt14, wmt16


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(common, "DATA_HOME", str(tmp_path))
    for name in ("cifar", "imdb", "movielens", "conll05st", "wmt14", "wmt16"):
        (tmp_path / name).mkdir()
    return tmp_path


def archive(path: Path, files: Mapping[str, bytes]) -> None:
    with tarfile.open(path, "w:gz") as made:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            made.addfile(member, io.BytesIO(content))


def test_reviews_are_words_without_marks_and_whether_they_are_bad(home: Path) -> None:
    reviews = {
        "train/pos/0": b"Good, good!\n",
        "train/neg/1": b"Bad good.",
        "test/neg/2": b"bad; new",
    }
    files = {f"aclImdb/{name}.txt": text for name, text in reviews.items()}
    archive(home / "imdb" / "imdb%2FaclImdb_v1.tar.gz", files)

    words = imdb.build_dict(re.compile(r"aclImdb/train/.*"), 0)

    assert words == {b"good": 0, b"bad": 1, "<unk>": 2}
    assert list(imdb.train(words)()) == [([0, 0], 0), ([1, 0], 1)]
    assert list(imdb.test(words)()) == [([1, 2], 1)]
    assert imdb.word_dict() == {"<unk>": 0}


def test_ratings_come_with_what_is_known_of_user_and_film(home: Path) -> None:
    with zipfile.ZipFile(home / "movielens" / "ml-1m.zip", "w") as made:
        made.writestr(
            "ml-1m/movies.dat", "7::Toy Box (1995)::Comedy|Animation\n9::Box (X) (1990)::Comedy\n"
        )
        made.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n")
        rows = [f"{1 + at % 2}::{7 + at % 2 * 2}::{1 + at % 5}::978300760\n" for at in range(100)]
        made.writestr("ml-1m/ratings.dat", "".join(rows))

    trained, tested = list(movielens.train()()), list(movielens.test()())

    assert trained[0] == [1, 1, 0, 10, 7, [1, 0], [2, 1], [-3.0]]
    assert movielens.get_movie_title_dict() == {"(x)": 0, "box": 1, "toy": 2}
    assert movielens.movie_categories() == {"Animation": 0, "Comedy": 1}
    assert len(trained) + len(tested) == 100
    assert 0 < len(tested) < 30
    maxima = movielens.max_user_id(), movielens.max_movie_id(), movielens.max_job_id()
    assert maxima == (2, 9, 16)
    assert movielens.user_info()[2].is_male
    assert movielens.movie_info()[9].title == "Box (X) "


CONLL_WORDS = "He\nsaw\nthe\ndog\n\nHi\n\n"
CONLL_PROPS = "-\t(A0*)\nsee\t(V*)\n-\t(A1*\n-\t*)\n\n-\n\n"


def conll(home: Path, props: str = CONLL_PROPS) -> None:
    texts = {"words": CONLL_WORDS, "props": props}
    files = {
        f"conll05st-release/test.wsj/{part}/test.wsj.{part}.gz": gzip.compress(text.encode())
        for part, text in texts.items()
    }
    archive(home / "conll05st" / "conll05st-tests.tar.gz", files)
    dicts = {"wordDict": "bos\neos\nsaw\nthe\ndog\n", "verbDict": "see\n"}
    dicts["targetDict"] = "B-A1\nI-A1\nB-V\nI-V\nB-A0\nI-A0\nO\n"
    for name, text in dicts.items():
        (home / "conll05st" / f"conll05st%2F{name}.txt").write_text(text)


def test_words_have_roles_for_each_verb(home: Path) -> None:
    conll(home)

    words, verbs, labels = conll05.get_dict()
    (example,) = list(conll05.test()())

    assert (words["dog"], verbs, labels["B-A0"], labels["I-V"], labels["O"]) == (
        4,
        {"see": 0},
        0,
        5,
        6,
    )
    sentence, *near, verb, marks, roles = example
    assert sentence == [0, 2, 3, 4]  # "He" is unknown, number 0
    assert [row[0] for row in near] == [0, 0, 2, 3, 4]  # bos He saw the dog
    assert (verb, marks) == ([0] * 4, [1, 1, 1, 1])
    assert roles == [labels[name] for name in ("B-A0", "B-V", "B-A1", "I-A1")]
    with pytest.raises(DataError, match=r"conll05st/emb is missing"):
        conll05.get_embedding()


def test_sentences_are_numbers_of_their_dictionaries(home: Path) -> None:
    files = {
        "wmt14/train/train": b"a b\tx y\nno target\n" + b"a " * 99 + b"\tx\n",
        "wmt14/test/test": b"b z\tz\n",
        "wmt14/src.dict": b"<s>\n<e>\n<unk>\na\nb\nz\n",
        "wmt14/trg.dict": b"<s>\n<e>\n<unk>\nx\ny\n",
    }
    archive(home / "wmt14" / "wmt14.tgz", files)

    assert list(wmt14.train(5)()) == [([0, 3, 4, 1], [0, 3, 4], [3, 4, 1])]
    assert list(wmt14.test(5)()) == [([0, 4, 2, 1], [0, 2], [2, 1])]
    assert wmt14.get_dict(4)[1] == {0: "<s>", 1: "<e>", 2: "<unk>", 3: "x"}
    with pytest.raises(DataError, match="ends with gen/gen"):
        next(wmt14.gen(5)())


def test_words_of_a_language_are_numbered_by_frequency(home: Path) -> None:
    files = {"wmt16/train": b"b a b\tx\nb a\tx y\n", "wmt16/val": b"a c\ty y\n"}
    archive(home / "wmt16" / "wmt16.tar.gz", files)

    assert wmt16.get_dict("en", 5) == {"<s>": 0, "<e>": 1, "<unk>": 2, "b": 3, "a": 4}
    assert wmt16.get_dict("de", 4, reverse=True)[3] == "x"
    assert list(wmt16.validation(5, 5)()) == [([0, 4, 2, 1], [0, 4, 4], [4, 4, 1])]
    assert list(wmt16.train(5, 4, "de")())[1] == ([0, 3, 4, 1], [0, 3, 2], [3, 2, 1])
    with pytest.raises(ValueError, match="not en or de"):
        wmt16.test(5, 5, "fr")


def test_colour_images_are_numbers_from_0_to_1_and_nothing_else_is_unpickled(home: Path) -> None:
    pixels = np.random.default_rng(2).integers(0, 256, (3, 3072), dtype=np.uint8)
    ten = {b"data": pixels[:2], b"labels": [3, 9]}
    hundred = {b"data": pixels[2:], b"fine_labels": [77]}
    parts = {"data_batch_1": ten, "test_batch": {b"data": pixels[2:], b"labels": [Path]}}
    files = {f"cifar-10-batches-py/{n}": pickle.dumps(part, 2) for n, part in parts.items()}
    archive(home / "cifar" / "cifar-10-python.tar.gz", files)
    archive(home / "cifar" / "cifar-100-python.tar.gz", {"c/train": pickle.dumps(hundred, 2)})

    found = [*cifar.train10()(), *cifar.train100()()]

    assert [label for _, label in found] == [3, 9, 77]
    np.testing.assert_allclose([image for image, _ in found], pixels / 255, rtol=1e-6)
    again = islice(cifar.train10(cycle=True)(), 3)
    assert [label for _, label in again] == [3, 9, 3]
    with pytest.raises(DataError, match=r"holds pathlib.*Path, which is no array"):
        list(cifar.test10()())
    with pytest.raises(DataError, match="has no file whose name begins with test"):
        list(cifar.test100()())
