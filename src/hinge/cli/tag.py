"""``hinge tag``: sequence labelling from files.

    hinge tag train train.conllu tagger.hinge --dev dev.conllu
    hinge tag predict tagger.hinge new.conllu --out tagged.conllu
    hinge tag score tagger.hinge test.conllu

Files are CoNLL-U (ten columns; the label is in column 4 by default), or have one token per line with its label in the
last column and an empty line after each sequence. Names that end in .gz are compressed.
"""

from __future__ import annotations

import gzip
import io
import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any

import numpy as np
import typer

from hinge.cli.exits import guard
from hinge.errors import UserError
from hinge.files import write_atomically

CONLLU_COLUMNS = 10
LEARNERS = ("crf", "svm", "perceptron")
CorpusFile = Annotated[
    Path,
    typer.Argument(
        help="CoNLL-U, or one token a line with its label last and an empty line between sequences; also .gz.",
        show_default=False,
    ),
]
TaggerFile = Annotated[Path, typer.Argument(help="A tagger written by hinge tag train.", show_default=False)]
LabelColumn = Annotated[int, typer.Option(help="The column of the labels in CoNLL-U, from 1: 4 UPOS, 5 XPOS.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]


@dataclass
class Corpus:
    """Sequences read from a file, with its lines, so that it can be written back with other labels."""

    words: list[list[str]]
    labels: list[list[str]]
    lines: list[str]
    places: list[int]  # the line of each token, in order
    column: int  # column of the labels; −1: after the last column

    def write(self, labels: list[list[str]], out: IO[str]) -> None:
        """The same file with these labels."""
        lines = list(self.lines)
        for place, label in zip(self.places, (label for sequence in labels for label in sequence)):
            cells = _cells(lines[place])
            if self.column < 0:
                cells = [cells[0], label]
            else:
                cells[self.column] = label
            lines[place] = "\t".join(cells)
        out.write("\n".join(lines) + "\n")


def _cells(line: str) -> list[str]:
    return line.split("\t") if "\t" in line else line.split()


def _open(path: Path) -> IO[str]:
    return gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")


def read_corpus(path: str | Path, column: int = 4) -> Corpus:
    """Sequences of words and labels from a CoNLL-U or two-column file.

    Parameters
    ----------
    path : path
    column : int
        Which column of a CoNLL-U file holds the labels, counted from 1 (4: UPOS, 5: XPOS).
    """
    with _open(Path(path)) as file:
        lines = file.read().splitlines()
    words: list[list[str]] = [[]]
    labels: list[list[str]] = [[]]
    places = []
    conllu = None
    for number, line in enumerate(lines):
        if not line.strip():
            if words[-1]:
                words.append([])
                labels.append([])
            continue
        cells = _cells(line)
        if line.startswith("#") and len(cells) != CONLLU_COLUMNS and conllu is not False:
            continue
        if conllu is None:
            conllu = len(cells) == CONLLU_COLUMNS
        if conllu and len(cells) != CONLLU_COLUMNS:
            raise UserError(f"{path}, line {number + 1}: {len(cells)} columns; CoNLL-U has {CONLLU_COLUMNS}.")
        if conllu and not cells[0].isdigit():  # several words in one, or an empty node
            continue
        words[-1].append(cells[1] if conllu else cells[0])
        labels[-1].append(cells[column - 1] if conllu else cells[-1] if len(cells) > 1 else "")
        places.append(number)
    if not words[-1]:
        words.pop(), labels.pop()
    if not words:
        raise UserError(f"{path} has no sequences.")
    return Corpus(words, labels, lines, places, column - 1 if conllu else -1)


def train(
    corpus: Corpus, learner: str = "crf", alpha: float | None = None, constraints: str | None = None,
    max_iter: int | None = None,
) -> Any:  # fmt: skip
    """A tagger fitted to a corpus."""
    from sklearn.exceptions import ConvergenceWarning  # imported here: it would dominate the time of `hinge --help`

    import hinge as hg

    makers = {"crf": hg.ChainCRF, "svm": hg.StructuredSVM, "perceptron": hg.StructuredPerceptron}
    if learner not in makers:
        raise UserError(f"learner={learner!r} is not known; expected one of {', '.join(LEARNERS)}.")
    given = {"alpha": alpha, "max_iter": max_iter}
    settings = {name: value for name, value in given.items() if value is not None}
    model = makers[learner](features=hg.structured.TextFeatures(), constraints=constraints, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is printed instead
        return model.fit(corpus.words, corpus.labels)


def scores(model: Any, corpus: Corpus) -> tuple[float, list[tuple[str, float, float, float, int]]]:
    """Token accuracy, and (label, precision, recall, F1, tokens) for every label of the corpus."""
    from sklearn.metrics import precision_recall_fscore_support

    truth = np.array([label for sequence in corpus.labels for label in sequence])
    guess = np.array([label for sequence in model.predict(corpus.words) for label in sequence])
    names = np.unique(truth)
    table = precision_recall_fscore_support(truth, guess, labels=names, zero_division=0.0)
    rows = [(str(name), float(p), float(r), float(f), int(n)) for name, p, r, f, n in zip(names, *table)]
    return float(np.mean(truth == guess)), rows


Span = tuple[int, int, int, str]


def spans(sequences: list[list[str]]) -> set[Span]:
    """The spans of labels B-x, I-x, … as (sequence, first token, token after the last, x).

    A span begins at B-x, and at I-x after another label than B-x or I-x (as CoNLL's evaluation has it); E-x and S-x end one.
    """
    found: set[Span] = set()
    for number, labels in enumerate(sequences):
        start, kind = 0, ""
        for k, label in enumerate([*labels, "O"]):
            mark, _, own = label.partition("-")
            if kind and (mark not in ("I", "E") or own != kind):
                found.add((number, start, k, kind))
                kind = ""
            if mark in ("B", "S", "I", "E") and own and not kind:
                start, kind = k, own
            if mark in ("E", "S") and kind:
                found.add((number, start, k + 1, kind))
                kind = ""
    return found


def has_spans(corpus: Corpus) -> bool:
    """True if every label is O or has a span prefix (B-, I-, E-, S-), and not all are O."""
    labels = {label for sequence in corpus.labels for label in sequence}
    return len(labels - {"O"}) > 0 and all(
        label == "O" or (label[:1] in "BIES" and label[1:2] == "-") for label in labels
    )


def evaluate(model: Any, corpus: Corpus) -> tuple[dict[str, Any], list[str]]:
    """The scores as data and as lines of text: by label, and of whole spans if labels are marked B-, I-, …"""
    accuracy, rows = scores(model, corpus)
    lines = [f"{'label':<12}{'precision':>10}{'recall':>10}{'F1':>10}{'tokens':>10}"]
    lines += [f"{name:<12}{p:>10.4f}{r:>10.4f}{f:>10.4f}{n:>10}" for name, p, r, f, n in rows]
    data: dict[str, Any] = {
        "accuracy": accuracy,
        "labels": {name: {"precision": p, "recall": r, "f1": f, "tokens": n} for name, p, r, f, n in rows},
    }
    if has_spans(corpus):
        truth, guess = spans(corpus.labels), spans([list(labels) for labels in model.predict(corpus.words)])
        hits = len(truth & guess)
        precision, recall = hits / max(len(guess), 1), hits / max(len(truth), 1)
        f1 = 2 * hits / max(len(guess) + len(truth), 1)
        data["spans"] = {"precision": precision, "recall": recall, "f1": f1, "spans": len(truth)}
        lines.append(f"{'whole spans':<12}{precision:>10.4f}{recall:>10.4f}{f1:>10.4f}{len(truth):>10}")
    return data, [*lines, f"accuracy {accuracy:.4f}"]


def make_app() -> Any:
    """The command line, as a typer application."""
    import hinge as hg

    app = typer.Typer(help="Label sequences: train a tagger from a file, use it, score it.", no_args_is_help=True)

    def emit(as_json: bool, data: dict[str, Any], lines: list[str]) -> None:
        typer.echo(json.dumps(data, ensure_ascii=False) if as_json else "\n".join(lines))

    @app.command("train")
    def train_command(
        data: CorpusFile,
        model: Annotated[Path, typer.Argument(help="The file to write.")],
        learner: Annotated[str, typer.Option(help="crf, svm or perceptron.")] = "crf",
        column: LabelColumn = 4,
        alpha: Annotated[float | None, typer.Option(help="The strength of the penalty.", show_default=False)] = None,
        constraints: Annotated[str | None, typer.Option(help="bio or bioes: labels that cannot follow each other never do.", show_default=False)] = None,
        max_iter: Annotated[int | None, typer.Option(help="Iterations or passes at most.", show_default=False)] = None,
        dev: Annotated[Path | None, typer.Option(help="Another file, to score the tagger on.", show_default=False)] = None,
        as_json: Json = False,
    ) -> None:  # fmt: skip
        """Fit a tagger to DATA and write it to MODEL; with --dev also score it."""
        with guard():
            tagger = train(read_corpus(data, column), learner, alpha, constraints, max_iter)
            hg.save(tagger, model)
            how = str(getattr(tagger, "certificate_", f"{tagger.n_iter_} passes"))
            found, lines = ({}, []) if dev is None else evaluate(tagger, read_corpus(dev, column))
            emit(as_json, {"model": str(model), "fit": how, **found}, [how, *lines])

    @app.command("predict")
    def predict_command(
        model: TaggerFile,
        data: CorpusFile,
        out: Annotated[Path | None, typer.Option(help="Write here instead of printing.", show_default=False)] = None,
        column: LabelColumn = 4,
        as_json: Json = False,
    ) -> None:
        """Label the sequences of DATA with MODEL; prints them, or writes them to --out."""
        with guard():
            from hinge.learning.model_inputs import load_any

            corpus = read_corpus(data, column)
            labels = [list(map(str, sequence)) for sequence in load_any(model)[0].predict(corpus.words)]
            text = io.StringIO()
            corpus.write(labels, text)
            if out is not None:
                write_atomically(out, text.getvalue().encode())
            if as_json:
                emit(True, {"out": None if out is None else str(out), "words": corpus.words, "labels": labels}, [])
            elif out is None:
                typer.get_text_stream("stdout").write(text.getvalue())

    @app.command("score")
    def score_command(
        model: TaggerFile,
        data: CorpusFile,
        column: LabelColumn = 4,
        as_json: Json = False,
    ) -> None:
        """Accuracy, and precision, recall and F1 per label and of whole spans, of MODEL on DATA."""
        with guard():
            from hinge.learning.model_inputs import load_any

            emit(as_json, *evaluate(load_any(model)[0], read_corpus(data, column)))

    return app


def main() -> None:
    """Entry point of ``python -m hinge.cli.tag``."""
    with guard():
        make_app()()


if __name__ == "__main__":
    main()
