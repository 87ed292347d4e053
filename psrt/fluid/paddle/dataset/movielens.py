"""`paddle.dataset.movielens`: ratings of films by users, with what is known of both."""

from __future__ import annotations

import random
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

from psrt.fluid.paddle.dataset import common

URL = "https://dataset.bj.bcebos.com/movielens%2Fml-1m.zip"
age_table = [1, 18, 25, 35, 45, 50, 56]
_TEST_SHARE = 0.1

Reader: TypeAlias = Callable[[], Iterator[list[Any]]]


@dataclass
class MovieInfo:
    """A film: its number, the names of its categories, and its title."""

    index: int
    categories: list[str]
    title: str
    _known: _Known = field(repr=False)

    def value(self) -> list[Any]:
        """Return number, numbers of categories, numbers of the title's words."""
        words = [self._known.words[word.lower()] for word in self.title.split()]
        return [self.index, [self._known.categories[name] for name in self.categories], words]


@dataclass
class UserInfo:
    """A user: number, whether male, place of the age in `age_table`, number of the job."""

    index: int
    is_male: bool
    age: int
    job_id: int

    def value(self) -> list[int]:
        """Return number, 0 for a man and 1 for a woman, age, job."""
        return [self.index, int(not self.is_male), self.age, self.job_id]


@dataclass
class _Known:
    """Films and users of an archive, and numbers of words of titles and of categories."""

    movies: dict[int, MovieInfo] = field(default_factory=dict)
    users: dict[int, UserInfo] = field(default_factory=dict)
    words: dict[str, int] = field(default_factory=dict)
    categories: dict[str, int] = field(default_factory=dict)


def train() -> Reader:
    """Return a reader of nine of ten ratings: user, film and [rating], −3 to 5, in one list.

    The elements are those of `UserInfo.value` and `MovieInfo.value`. Numbers of words and
    categories follow the alphabet; PaddlePaddle's differ from process to process.
    """
    return lambda: _ratings(of_test=False)


def test() -> Reader:
    """Return a reader of the other ratings, as `train`."""
    return lambda: _ratings(of_test=True)


def get_movie_title_dict() -> dict[str, int]:
    """Return the number of each word of the titles, lower-case."""
    return _known().words


def movie_categories() -> dict[str, int]:
    """Return the number of each category."""
    return _known().categories


def user_info() -> dict[int, UserInfo]:
    """Return users by number."""
    return _known().users


def movie_info() -> dict[int, MovieInfo]:
    """Return films by number."""
    return _known().movies


def max_movie_id() -> int:
    """Return the highest number of a film."""
    return max(movie_info())


def max_user_id() -> int:
    """Return the highest number of a user."""
    return max(user_info())


def max_job_id() -> int:
    """Return the highest number of a job."""
    return max(user.job_id for user in user_info().values())


def _known() -> _Known:
    return _read(common.download(URL, "movielens"))


@lru_cache(maxsize=1)
def _read(path: str) -> _Known:
    known = _Known()
    for index, title, categories in _lines(path, "movies.dat"):
        plain = re.sub(r"\(\d+\)$", "", title)
        known.movies[int(index)] = MovieInfo(int(index), categories.split("|"), plain, known)
    for index, gender, age, job, _ in _lines(path, "users.dat"):
        at = age_table.index(int(age))
        known.users[int(index)] = UserInfo(int(index), gender == "M", at, int(job))
    films = known.movies.values()
    known.words = _numbered({word.lower() for film in films for word in film.title.split()})
    known.categories = _numbered({name for film in films for name in film.categories})
    return known


def _numbered(names: set[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(sorted(names))}


def _ratings(of_test: bool) -> Iterator[list[Any]]:
    path, known = common.download(URL, "movielens"), _known()
    chosen = random.Random(0)
    for user, movie, rating, _ in _lines(path, "ratings.dat"):
        if (chosen.random() < _TEST_SHARE) == of_test:
            of_both = known.users[int(user)].value() + known.movies[int(movie)].value()
            yield [*of_both, [float(rating) * 2 - 5.0]]


def _lines(path: str, name: str) -> Iterator[list[str]]:
    with zipfile.ZipFile(path) as archive, archive.open(f"ml-1m/{name}") as lines:
        for line in lines:
            yield line.decode("latin-1").strip().split("::")


__all__ = ["MovieInfo", "UserInfo", "age_table", "get_movie_title_dict", "max_job_id"]
__all__ += ["max_movie_id", "max_user_id", "movie_categories", "movie_info", "test", "train"]
__all__ += ["user_info"]
