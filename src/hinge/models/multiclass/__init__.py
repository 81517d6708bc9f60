"""Several classes: reductions to two, and models of all classes at once."""

from hinge.models.multiclass.codes import OutputCodeClassifier, design_code
from hinge.models.multiclass.one_vs_one import OneVsOneClassifier
from hinge.models.multiclass.one_vs_rest import OneVsRestClassifier
from hinge.models.multiclass.perceptron import MulticlassPerceptron
from hinge.models.multiclass.svm import MulticlassSVM

__all__ = [
    "MulticlassPerceptron",
    "MulticlassSVM",
    "OneVsOneClassifier",
    "OneVsRestClassifier",
    "OutputCodeClassifier",
    "design_code",
]
