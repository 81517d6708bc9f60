"""Structured prediction: sequences and trees of labels."""

from hinge.models.structured.crf import ChainCRF, TreeCRF
from hinge.models.structured.features import TextFeatures, word_shape
from hinge.models.structured.perceptron import StructuredPerceptron
from hinge.models.structured.svm import StructuredSVM

__all__ = ["ChainCRF", "StructuredPerceptron", "StructuredSVM", "TextFeatures", "TreeCRF", "word_shape"]
