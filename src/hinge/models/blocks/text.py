"""Vocabularies over blocks of texts: one pass counts the texts of every term; with ``max_features`` a second one counts its
occurrences. The vocabulary must fit into memory; HashingVectorizer needs none."""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from hinge.blocks.block import Block
from hinge.blocks.passes import Passes
from hinge.errors import UserError
from hinge.features.tokenize import document_frequencies


class TextsOfTerms(NamedTuple):
    """The document frequency of every term, and the number of texts."""

    terms: Counter[str]
    texts: int

    def merge(self, other: TextsOfTerms) -> TextsOfTerms:
        """The frequencies of both sets of texts."""
        more, less = (self, other) if len(self.terms) >= len(other.terms) else (other, self)
        more.terms.update(less.terms)
        return TextsOfTerms(more.terms, self.texts + other.texts)


def texts_of(block: Block, vectorizer: Any) -> list[str]:
    """The texts of a block, which has one column."""
    if block.frame is None or block.frame.shape[1] != 1:
        raise UserError(
            f"{block.where}: {type(vectorizer).__name__} takes one column of texts; name it in hg.scan(…, columns=[…])."
        )
    return vectorizer._texts(block.frame[block.frame.columns[0]].to_list())


def texts_of_terms(block: Block, vectorizer: Any) -> TextsOfTerms:
    """The statistic of the first pass."""
    texts = texts_of(block, vectorizer)
    return TextsOfTerms(document_frequencies(texts, vectorizer._cutter()), len(texts))


def occurrences(block: Block, vectorizer: Any, terms: list[str]) -> np.ndarray:
    """The statistic of the second pass."""
    return vectorizer._occurrences(texts_of(block, vectorizer), terms)


def fit_vectorizer(estimator: Any, passes: Passes) -> None:
    """Learn the terms of all texts and, for tf-idf, their factors."""
    estimator._warn_of_unused()
    fixed = estimator.vocabulary is not None
    if fixed:
        estimator._adopt_vocabulary()
        estimator._warn_of_upper_case()
        if not getattr(estimator, "use_idf", False):
            return
    found: TextsOfTerms = passes.total(texts_of_terms, estimator)
    if not fixed:
        estimator._choose_terms(found.terms, found.texts, lambda terms: passes.total(occurrences, estimator, terms))
    if hasattr(estimator, "_set_factors"):
        frequency = np.array([found.terms[term] for term in estimator.get_feature_names_out()], dtype=np.float64)
        estimator._set_factors(frequency, found.texts)
