"""Structured prediction: sequences, trees and graphs of labels."""

from hinge.models.structured.crf import ChainCRF, TreeCRF
from hinge.models.structured.features import TextFeatures, word_shape
from hinge.models.structured.graphs import GraphLabelling, GraphMarginals, graph_labelling, graph_marginals
from hinge.models.structured.perceptron import StructuredPerceptron
from hinge.models.structured.svm import StructuredSVM

__all__ = [
    "ChainCRF",
    "GraphLabelling",
    "GraphMarginals",
    "StructuredPerceptron",
    "StructuredSVM",
    "TextFeatures",
    "TreeCRF",
    "graph_labelling",
    "graph_marginals",
    "word_shape",
]
