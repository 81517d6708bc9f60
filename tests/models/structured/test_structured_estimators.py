"""Sequence estimators: inputs of every kind, constraints, real sentences, and the usual laws."""

from __future__ import annotations

import gzip
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import hinge as hg

X = [["The", "dog", "barks"], ["A", "cat", "sleeps"], ["Dogs", "bark"]]
Y = [["DET", "NOUN", "VERB"], ["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
TREES = [[1, 2, -1], [1, 2, -1], [1, -1]]
MODELS = [
    hg.ChainCRF(0.01, features=hg.structured.TextFeatures()),
    hg.StructuredSVM(0.01, features=hg.structured.TextFeatures()),
    hg.StructuredPerceptron(average=False, features=hg.structured.TextFeatures()),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=lambda m: type(m).__name__)


@every_model
def test_models_learn_from_words(model):
    fitted = clone(model).fit(X, Y)
    assert fitted.predict(X) == Y
    assert fitted.score(X, Y) == 1.0
    assert fitted.predict([["The", "dog", "sleeps"], []]) == [["DET", "NOUN", "VERB"], []]
    assert fitted.predict([["Unheard", "of"]])[0]  # unknown words are no error
    again = pickle.loads(pickle.dumps(fitted))
    assert again.predict(X) == Y
    assert fitted.classes_.tolist() == ["DET", "NOUN", "VERB"]
    assert fitted.coef_.shape == (len(fitted.attributes_), 3)
    assert fitted.features == hg.structured.TextFeatures()


@every_model
def test_inputs_of_every_kind_are_the_same_problem(model):
    """Names, dictionaries, dense and sparse matrices."""
    rng = np.random.default_rng(0)
    matrices = [(rng.random((n, 6)) < 0.5).astype(float) for n in (3, 4, 2, 5, 3)]
    labels = [rng.integers(3, size=len(m)).tolist() for m in matrices]
    labels[0] = [0, 1, 2]
    names = [[[f"f{j}" for j in np.flatnonzero(row)] for row in m] for m in matrices]
    dicts = [[{f"f{j}": v for j, v in enumerate(row)} for row in m] for m in matrices]
    model = clone(model).set_params(features=None)
    if "tol" in model.get_params():
        model.set_params(tol=1e-6, max_iter=100_000, alpha=0.5)
    scores = []
    for inputs in (names, dicts, matrices, [scipy.sparse.csr_array(m) for m in matrices]):
        fitted = clone(model).fit(inputs, labels)
        scores.append(fitted.decision_function(inputs))
        with pytest.raises(ValueError, match="labels, but"):
            clone(model).fit(inputs, [*labels[:-1], labels[-1][:-1]])
    for other in scores[1:]:
        np.testing.assert_allclose(other, scores[0], atol=1e-2)
    values = [[{"word": "a", "size": 2.5}], [{"word": "b"}]]
    assert "word=a" in clone(model).fit(values, [["x"], ["y"]]).attributes_


@pytest.mark.mission("S4")
@pytest.mark.parametrize(
    "model",
    [hg.TreeCRF(0.01), hg.StructuredSVM(0.01), hg.StructuredPerceptron()],
    ids=lambda m: type(m).__name__,
)
def test_learns_trees(model):
    """Labels that depend on the parent's label alone: children are unlike their parents."""
    rng = np.random.default_rng(1)
    parents = [[-1, *(int(rng.integers(t)) for t in range(1, 8))] for _ in range(30)]
    tokens, labels = [], []
    for tree in parents:
        y = [int(rng.integers(2))]
        for t in range(1, 8):
            y.append(1 - y[tree[t]])
        labels.append(y)
        tokens.append([[f"root{y[0]}"] if t == 0 else ["inner"] for t in range(8)])
    fitted = clone(model).fit(tokens, labels, parents=parents)
    assert fitted.predict(tokens, parents=parents) == labels
    tops = fitted.predict_top(tokens, 2, parents=parents)
    assert [top[0][0] for top in tops] == labels
    np.testing.assert_allclose([top[0][1] for top in tops], fitted.decision_function(tokens, parents=parents))
    second = [top[1] for top in tops]
    scores = fitted.decision_function(tokens, [y for y, _ in second], parents=parents)
    np.testing.assert_allclose([score for _, score in second], scores)
    with pytest.raises(ValueError, match="parents"):
        fitted.predict(tokens, parents=parents[:-1])
    with pytest.raises(ValueError, match="cycle"):
        fitted.predict([[["a"], ["b"]]], parents=[[1, 0]])


def test_constraints_are_kept():
    """BIO: I-X follows B-X or I-X only, in predictions, marginals and the k best."""
    rng = np.random.default_rng(2)
    words = [[f"w{rng.integers(6)}" for _ in range(8)] for _ in range(40)]
    tags = [["O", "B-A", "I-A", "O", "B-B", "I-B", "I-B", "O"] for _ in words]
    tokens = [[[w] for w in sentence] for sentence in words]
    model = hg.ChainCRF(0.05, constraints="bio").fit(tokens, tags)
    noise = [[[f"w{rng.integers(6)}"] for _ in range(7)] for _ in range(50)]
    candidates = [labels for top in model.predict_top(noise, 5) for labels, _ in top] + model.predict(noise)
    for labels in candidates:
        for before, after in zip([None, *labels], labels):
            assert not after.startswith("I-") or (before is not None and before[2:] == after[2:])
    inside = [k for k, label in enumerate(model.classes_) if label.startswith("I-")]
    assert all(np.all(m[0, inside] == 0) for m in model.predict_marginals(noise))
    with pytest.raises(ValueError, match="breaks the constraints"):
        hg.ChainCRF(constraints="bio").fit(tokens[:1], [["O", "I-A", "O", "O", "O", "O", "O", "O"]])
    with pytest.raises(ValueError, match="'constraints' parameter"):
        hg.ChainCRF(constraints="bip").fit(tokens, tags)


def test_probabilities_of_a_crf_fit_together():
    model = hg.ChainCRF(0.01, features=hg.structured.TextFeatures()).fit(X, Y)
    for marginals, confidence, labels in zip(model.predict_marginals(X), model.predict_confidence(X), Y):
        np.testing.assert_allclose(marginals.sum(axis=1), 1.0)
        codes = np.searchsorted(model.classes_, labels)
        np.testing.assert_allclose(confidence, marginals[np.arange(len(codes)), codes])
    best = [top[0] for top in model.predict_top(X, 3)]
    assert [labels for labels, _ in best] == Y
    np.testing.assert_allclose([score for _, score in best], model.decision_function(X))
    everything = model.predict_top(X[2:], 100)[0]
    assert len(everything) == 9  # 3 labels, 2 tokens
    total = sum(np.exp(model.log_likelihood(X[2:], [labels])[0]) for labels, _ in everything)
    np.testing.assert_allclose(total, 1.0)


@pytest.mark.parametrize("model", [hg.ChainCRF(0.1, tol=1e-9), hg.StructuredSVM(0.5, tol=1e-4, max_iter=5000)])
def test_weights_are_repetitions(model, rng):
    tokens = [rng.normal(size=(4, 3)) for _ in range(10)]
    labels = [rng.integers(2, size=4) for _ in range(10)]
    weights = rng.integers(0, 3, size=10)
    weights[0] = 2
    repeated = np.repeat(np.arange(10), weights)
    a = clone(model).fit(tokens, labels, sample_weight=weights)
    b = clone(model).fit([tokens[i] for i in repeated], [labels[i] for i in repeated])
    np.testing.assert_allclose(a.certificate_.primal, b.certificate_.primal, rtol=1e-4)
    np.testing.assert_allclose(a.coef_.toarray(), b.coef_.toarray(), atol=2e-2)
    with pytest.raises(ValueError, match="nothing to learn from"):
        clone(model).fit(tokens, labels, sample_weight=np.zeros(10))


def test_same_bits_for_any_number_of_threads(rng):
    tokens = [rng.normal(size=(int(rng.integers(1, 30)), 5)) for _ in range(300)]
    labels = [rng.integers(4, size=len(t)) for t in tokens]
    before = hg.num_threads()
    try:
        results = []
        for threads in (1, 2):
            hg.set_num_threads(threads)
            crf = hg.ChainCRF(1e-3).fit(tokens, labels)
            results.append(np.concatenate([crf.coef_.data, crf.transitions_.ravel(), crf.decision_function(tokens)]))
        np.testing.assert_array_equal(*results)
    finally:
        hg.set_num_threads(before)


def test_wrong_arguments_are_named():
    with pytest.raises(NotFittedError):
        hg.ChainCRF().predict(X)
    with pytest.raises(TypeError, match="TextFeatures"):
        hg.ChainCRF().fit(X, Y)
    with pytest.raises(ValueError, match="same number"):
        hg.ChainCRF().fit(X, Y[:2])
    with pytest.raises(ValueError, match="alpha"):
        hg.ChainCRF(alpha=-1).fit(X, Y)
    with pytest.raises(ValueError, match="parents"):
        hg.TreeCRF(features=hg.structured.TextFeatures()).fit(X, Y)
    with pytest.raises(ValueError, match="NaN"):
        hg.ChainCRF().fit([[{"a": np.nan}]], [["x"]])
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        hg.ChainCRF(features=hg.structured.TextFeatures(), max_iter=1).fit(X, Y)
    fitted = hg.ChainCRF(features=hg.structured.TextFeatures()).fit(X, Y)
    with pytest.raises(ValueError, match="not seen in training"):
        fitted.log_likelihood(X, [["DET", "NOUN", "??"], Y[1], Y[2]])


def sentences(path):
    """Words and universal tags of a CoNLL-U file."""
    words, tags = [[]], [[]]
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            cells = line.rstrip("\n").split("\t")
            if len(cells) == 10 and cells[0].isdigit():
                words[-1].append(cells[1])
                tags[-1].append(cells[3])
            elif line == "\n" and words[-1]:
                words.append([])
                tags.append([])
    return (words, tags) if words[-1] else (words[:-1], tags[:-1])


@pytest.mark.mission("S5")
def test_part_of_speech_on_a_real_treebank(real_data):
    """A part of the English Web Treebank: all three learners tag the test sentences well above the commonest tag."""
    words, tags = sentences(real_data("en_ewt-ud-dev.conllu.gz"))
    test_words, test_tags = sentences(real_data("en_ewt-ud-test.conllu.gz"))
    baseline = np.mean([tag == "NOUN" for sentence in test_tags for tag in sentence])
    assert baseline < 0.25
    for model, least in [
        (hg.ChainCRF(2e-4, features=hg.structured.TextFeatures(), max_iter=40), 0.885),
        (hg.StructuredPerceptron(5, features=hg.structured.TextFeatures()), 0.885),
        (hg.StructuredSVM(2e-3, features=hg.structured.TextFeatures(), max_iter=5), 0.885),
    ]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # few passes are enough for this test
            model.fit(words, tags)
        assert model.score(test_words, test_tags) >= least


@pytest.mark.slow
@pytest.mark.mission("S5")
def test_same_optimum_and_accuracy_as_crfsuite(real_data, tmp_path):
    """The same features, penalty and iterations: the same objective and the same test accuracy."""
    pycrfsuite = pytest.importorskip("pycrfsuite", reason="python-crfsuite is an optional peer")
    words, tags = sentences(real_data("en_ewt-ud-dev.conllu.gz"))
    test_words, test_tags = sentences(real_data("en_ewt-ud-test.conllu.gz"))
    extract, n = hg.structured.TextFeatures(), len(words)
    trainer = pycrfsuite.Trainer("lbfgs", verbose=False)
    for sentence, labels in zip(words, tags):
        trainer.append(extract(sentence), labels)
    trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": 60})
    trainer.train(str(tmp_path / "peer"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        ours = hg.ChainCRF(2.0 / n, features=extract, max_iter=60).fit(words, tags)
    peer = trainer.logparser.last_iteration["loss"]
    assert ours.certificate_.primal * n <= peer * 1.001
    tagger = pycrfsuite.Tagger()
    tagger.open(str(tmp_path / "peer"))
    theirs = np.mean([a == b for s, t in zip(test_words, test_tags) for a, b in zip(tagger.tag(extract(s)), t)])
    assert ours.score(test_words, test_tags) >= theirs - 0.002


@pytest.mark.mission("S3")
def test_learner_over_chains_and_trees_is_the_named_estimator():
    """A hypothesis space, a loss and a penalty: the three losses over one space."""
    space = hg.Chain(features=hg.structured.TextFeatures())
    crf = hg.Learner(space, hg.StructuredLogistic(), hg.L2(0.01)).fit(X, Y)
    named = hg.ChainCRF(0.01, features=hg.structured.TextFeatures(), tol=1e-6).fit(X, Y)
    np.testing.assert_allclose(crf.coef_.toarray(), named.coef_.toarray())
    assert crf.certificate_.converged
    svm = hg.Learner(space, hg.StructuredHinge(), hg.L2(0.01), tol=1e-3).fit(X, Y)
    lasso = hg.Learner(space, hg.StructuredLogistic(), hg.L1(0.01), tol=1e-4).fit(X, Y)
    assert lasso.coef_.nnz < crf.coef_.nnz
    perceptron = hg.Learner(space, hg.StructuredPerceptronLoss(), max_iter=50).fit(X, Y)
    for model in (crf, svm, lasso):
        assert model.predict(X) == Y
        assert model.score(X, Y) == 1.0
    assert perceptron.score(X, Y) > 0.5
    pairs = list(zip([hg.structured.TextFeatures()(words) for words in X], TREES))
    tree = hg.Learner(hg.TreeOutput(), hg.StructuredLogistic(), hg.L2(0.01)).fit(pairs, Y)
    assert tree.predict(pairs) == Y
    with pytest.raises(TypeError, match="not a loss of sequences"):
        hg.Learner(space, hg.Softmax(), hg.L2(0.01)).fit(X, Y)
    with pytest.raises(TypeError, match="no penalty"):
        hg.Learner(space, hg.StructuredPerceptronLoss(), hg.L2(0.01)).fit(X, Y)


@pytest.mark.mission("S3")
@pytest.mark.parametrize("valued", [False, True], ids=["names", "values"])
def test_single_precision_ends_in_a_double_certificate(valued):
    """Fits begin in single precision; what is reported is the objective in double, and within the gap of the optimum.

    Eleven labels, attributes seen with one or two of them and with all: both ways of storing weights take part.
    """
    rng = np.random.default_rng(3)
    labels = [f"L{k}" for k in range(11)]
    sequences, tags = [], []
    for _ in range(120):
        states = rng.integers(11, size=rng.integers(1, 12))
        names = [[f"common{rng.integers(4)}", f"of{k}:{rng.integers(3)}", f"rare{rng.integers(400)}"] for k in states]
        sequences.append([{name: float(rng.uniform(0.5, 2)) for name in token} if valued else token for token in names])
        tags.append([labels[k] for k in states])
    loose = hg.ChainCRF(0.01, tol=1e-2).fit(sequences, tags)
    tight = hg.ChainCRF(0.01, tol=1e-8).fit(sequences, tags)
    for model in (loose, tight):
        square = np.sum(model.coef_.data**2) + np.sum(model.transitions_**2)
        objective = -np.mean(model.log_likelihood(sequences, tags)) + 0.01 * square / 2
        np.testing.assert_allclose(model.certificate_.primal, objective, rtol=1e-12)
        assert model.certificate_.converged
    assert tight.certificate_.primal <= loose.certificate_.primal
    assert loose.certificate_.primal - tight.certificate_.primal <= loose.certificate_.gap
    counts = np.diff(loose.coef_.indptr)
    assert counts.min() == 1
    assert counts.max() == 11


@pytest.mark.mission("S1")
def test_names_are_recognised_by_their_letters():
    """Equal names in different objects are one attribute; names of other alphabets and lengths are others."""
    names = ["a", "á", "語", "😀", "ab", "x" * 300, ""]
    X = [[[name] for name in names], [["".join(list(name))] for name in names] * 700]
    model = hg.ChainCRF(max_iter=2, tol=1e9).fit(X, [["A"] * 6 + ["B"], ["A"] * 7 * 700])
    assert sorted(model.attributes_) == sorted(names)
    kept = hg.ChainCRF(max_iter=2, tol=1e9, min_count=700).fit(X, [["A"] * 6 + ["B"], ["A"] * 7 * 700])
    assert kept.vocabulary_.encode([[["語"], [], ["語語", "a"]]], None).indptr.tolist() == [0, 1, 1, 2]
