"""Scores of word vectors by word2vec's analogy questions (`questions-words.txt`).

A line is four words, a is to b as c is to d; `: name` begins a section. Scores count only questions
whose four words, lower-cased, have vectors:

    accuracy   share of questions with d as the word nearest to b − a + c, except these three
               (3CosAdd, Mikolov et al. 2013); near 0 for a text of a million words
    top_10     share of questions with d among the ten nearest words
    kinds      probability that two words of a kind are nearer to each other than two words of
               different kinds. A kind is a column of a section (capitals, countries, past
               tenses, …). Random vectors score 0.5. Less noisy than the others on small texts.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

Question = tuple[str, str, str, str]
AT_A_TIME = 500


def scores(vectors: np.ndarray, words: Sequence[str], questions: Path) -> dict[str, float]:
    """All scores, 0 to 1, of `vectors` (n, width) for `words` (n)."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    ids = {word: number for number, word in enumerate(words)}
    sections = {
        name: np.array([[ids[word] for word in asked] for asked in all_asked])
        for name, all_asked in known(questions, ids).items()
    }
    ranks = ranks_of(unit, np.concatenate(list(sections.values())))
    return {
        "questions": len(ranks),
        "accuracy": round(float((ranks < 1).mean()), 4),
        "top_10": round(float((ranks < 10).mean()), 4),
        "kinds": round(kinds(unit, list(sections.values())), 4),
    }


def known(path: Path, ids: Mapping[str, int]) -> dict[str, list[Question]]:
    """The questions whose words all have vectors, by section."""
    found: dict[str, list[Question]] = {}
    for section, asked in questions_of(path):
        if all(word in ids for word in asked):
            found.setdefault(section, []).append(asked)
    if not found:
        raise SystemExit(f"no question of {path} has vectors for all of its words")
    return found


def questions_of(path: Path) -> Iterator[tuple[str, Question]]:
    section = ""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            if line.startswith(":"):
                section = line[1:].strip()
            else:
                a, b, c, d = line.lower().split()
                yield section, (a, b, c, d)


def ranks_of(unit: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """The number of words nearer to b − a + c than d, for each question (n, 4)."""
    ranks = []
    for start in range(0, len(asked), AT_A_TIME):
        a, b, c, d = asked[start : start + AT_A_TIME].T
        rows = np.arange(len(a))
        near = (unit[b] - unit[a] + unit[c]) @ unit.T
        for each in (a, b, c):
            near[rows, each] = -np.inf
        ranks.append((near > near[rows, d][:, None]).sum(1))
    return np.concatenate(ranks)


def kinds(unit: np.ndarray, sections: Sequence[np.ndarray]) -> float:
    """Area under the ROC curve of cosine similarity as a test for two words of one kind."""
    columns = [np.unique(asked[:, pair]) for asked in sections for pair in ([0, 2], [1, 3])]
    words = np.unique(np.concatenate(columns))
    member = np.array([np.isin(words, column) for column in columns])
    same = (member.T.astype(np.int32) @ member) > 0
    pairs = np.triu_indices(len(words), 1)
    cosines, is_same = (unit[words] @ unit[words].T)[pairs], same[pairs]
    order = np.empty(len(cosines))
    order[np.argsort(cosines)] = np.arange(1, len(cosines) + 1)
    alike = int(is_same.sum())
    apart = len(cosines) - alike
    return float((order[is_same].sum() - alike * (alike + 1) / 2) / (alike * apart))
