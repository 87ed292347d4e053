"""MovieLens 1M, `ratings.dat users.dat movies.dat` in one directory, as MultiSlot files.

Fields are separated by `::`, text is Latin-1. An example is a rating, with the data of its user and
its film:

    rating                            float × 1      1 … 5
    user, gender, age, occupation     id × 1         gender 0 = F, 1 = M; age 0 … 6, its bracket
    movie                             id × 1
    genres, title                     ragged ids     numbered in the order of movies.dat; words of
                                                     titles in lower case, without the year

Ids of users and films are those of the files, so a table needs one row more than the largest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from psrt.core.errors import DataError
from psrt.data.convert.sharded import Destination, ShardedWriter, Split, write_split
from psrt.data.convert.splitter import Record, drawn_lines, fields_of, number_of, numbered_lines
from psrt.data.slots import Slot

FILES = ("ratings.dat", "users.dat", "movies.dat")
AGES = (1, 18, 25, 35, 45, 50, 56)
POSITIVE_RATING = 4
_ONE_ID = ("user", "gender", "age", "occupation", "movie")
SLOTS = (
    Slot("rating", "float", 1),
    *(Slot(name, "uint64", 1) for name in _ONE_ID),
    Slot("genres", "uint64"),
    Slot("title", "uint64"),
)
_YEAR = re.compile(r"\s*\(\d{4}\)\s*$")


def convert(
    directory: Path,
    destination: Destination,
    split: Split,
    on_bytes: Callable[[int], None] = lambda size_bytes: None,
) -> ShardedWriter:
    """Write a line for each rating; the report counts those of 4 and more as positive."""
    ratings, users, movies = (directory / name for name in FILES)
    about_user, about_movie = read_users(users), read_movies(movies)
    names = ("UserID", "MovieID", "Rating", "Timestamp")

    def records() -> Iterator[Record]:
        for number, line in numbered_lines(ratings, on_bytes):
            user, movie, rating, _ = fields_of(ratings, number, line, b"::", names)
            stars = number_of(ratings, number, "Rating", rating)
            where = f"{ratings}, line {number}"
            text = f"1 {stars} {_of(about_user, user, where, 'user')} "
            text += f"{_of(about_movie, movie, where, 'film')}\n"
            yield line, [text.encode()], stars >= POSITIVE_RATING

    return write_split(destination, split, drawn_lines(records(), split.seed))


def read_users(path: Path) -> dict[bytes, str]:
    """Return user → `user gender age occupation`, in the form of a line."""
    names = ("UserID", "Gender", "Age", "Occupation", "Zip-code")
    found = {}
    for number, line in numbered_lines(path):
        user, gender, age, occupation, _ = fields_of(path, number, line, b"::", names)
        years = number_of(path, number, "Age", age)
        if years not in AGES or gender not in (b"F", b"M"):
            raise DataError(
                f"{path}, line {number}: gender {gender.decode('latin-1')!r} or age {years} is "
                "none of this data set. Nothing was written.",
                hint=f"Gender is F or M, age one of {', '.join(map(str, AGES))}.",
            )
        work = number_of(path, number, "Occupation", occupation)
        who = number_of(path, number, "UserID", user)
        found[user] = f"1 {who} 1 {int(gender == b'M')} 1 {AGES.index(years)} 1 {work}"
    return found


def read_movies(path: Path) -> dict[bytes, str]:
    """Return film → `movie genres title`, in the form of a line."""
    genre_ids: dict[str, int] = {}
    word_ids: dict[str, int] = {}
    found = {}
    for number, line in numbered_lines(path):
        names = ("MovieID", "Title", "Genres")
        movie, title, genres = fields_of(path, number, line, b"::", names)
        words = _YEAR.sub("", title.decode("latin-1")).lower().split()
        which = number_of(path, number, "MovieID", movie)
        kinds = _ids(genres.decode("latin-1").split("|"), genre_ids)
        found[movie] = f"1 {which} {kinds} {_ids(words, word_ids)}"
    return found


def _ids(words: list[str], known: dict[str, int]) -> str:
    ids = [str(known.setdefault(word, len(known))) for word in words]
    return " ".join((str(len(ids)), *ids))


def _of(known: dict[bytes, str], key: bytes, where: str, kind: str) -> str:
    if key not in known:
        shown = key.decode("latin-1")
        raise DataError(f"{where}: {kind} {shown!r} is in no other file. Nothing was written.")
    return known[key]
