"""Writes MultiSlot files of invented film ratings: `python make_data.py data`.

Slots: `user`, `gender`, `age`, `job`, `film` (1 id each), `genres` (1 to 3 ids), `rating` (1 float,
1 to 5). Users and films have hidden tastes of 4 numbers, part of which follow from their features:

    rating = 3 + 1.6 · cosine(tastes) + noise of deviation 0.4, cut to 1 … 5

so that the best mean square error is about 0.16, and that of always saying the mean about 0.8.
"""

from __future__ import annotations

import math
import random
import sys
from pathlib import Path

USERS, FILMS, TASTES = 600, 400, 4
GENDERS, AGES, JOBS, GENRES = 2, 7, 12, 10
RATINGS, TEST_RATINGS, FILES = 40_000, 4_000, 4
NOISE = 0.4

Taste = list[float]


class World:
    """Tastes by user and film, and what is known of both."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self._traits = {
            (kind, value): self._taste()
            for kind, count in (("age", AGES), ("job", JOBS), ("genre", GENRES))
            for value in range(count)
        }
        self.users = [self._user() for _ in range(USERS)]
        self.films = [self._film() for _ in range(FILMS)]

    def line(self) -> str:
        """One rating as a MultiSlot line."""
        user, film = self.draw.randrange(USERS), self.draw.randrange(FILMS)
        (gender, age, job), taste = self.users[user]
        genres, charm = self.films[film]
        rating = 3 + 1.6 * cosine(taste, charm) + self.draw.gauss(0, NOISE)
        one = " ".join(f"1 {value}" for value in (user, gender, age, job, film))
        many = f"{len(genres)} {' '.join(map(str, genres))}"
        return f"{one} {many} 1 {min(5.0, max(1.0, rating)):.2f}\n"

    def _taste(self) -> Taste:
        return [self.draw.gauss(0, 1) for _ in range(TASTES)]

    def _user(self) -> tuple[tuple[int, int, int], Taste]:
        features = tuple(self.draw.randrange(count) for count in (GENDERS, AGES, JOBS))
        _, age, job = features
        return features, added(self._traits["age", age], self._traits["job", job], self._taste())

    def _film(self) -> tuple[list[int], Taste]:
        genres = self.draw.sample(range(GENRES), self.draw.randint(1, 3))
        return genres, added(*(self._traits["genre", genre] for genre in genres), self._taste())


def added(*tastes: Taste) -> Taste:
    return [sum(column) for column in zip(*tastes, strict=True)]


def cosine(x: Taste, y: Taste) -> float:
    return sum(a * b for a, b in zip(x, y, strict=True)) / (math.hypot(*x) * math.hypot(*y))


def main(directory: Path) -> None:
    world = World(random.Random(1))
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(FILES):
        text = "".join(world.line() for _ in range(RATINGS // FILES))
        (directory / f"train-{number}.txt").write_text(text)
    (directory / "test-0.txt").write_text("".join(world.line() for _ in range(TEST_RATINGS)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
