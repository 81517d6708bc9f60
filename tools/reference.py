"""The reference: every public name with its signature and docstring, as HTML."""

from __future__ import annotations

import html
import inspect
import re
from operator import attrgetter
from typing import Any

import hinge
from hinge._parameters import Estimator, table

TITLES = {
    "hinge.problem": "Problems", "hinge.solvers": "Solvers", "hinge.models": "Models", "hinge.features": "Features",
    "hinge.select": "Selection", "hinge.explain": "Explanations", "hinge.files": "Files", "hinge.datasets": "Data",
    "hinge.learning": "Tables", "hinge._native": "Threads",
}  # fmt: skip


def groups() -> dict[str, list[str]]:
    """Public names by the room they live in."""
    found: dict[str, list[str]] = {}
    for module, names in hinge._PUBLIC.items():
        room = ".".join(module.split(".")[:2])
        found.setdefault(TITLES.get(room, room), []).extend(names)
    for name in hinge.NAMESPACES:
        found[f"hg.{name}"] = [f"{name}.{public}" for public in getattr(hinge, name).__all__]
    return {title: sorted(names, key=str.lower) for title, names in found.items()}


def signature(thing: Any) -> str:
    try:
        text = str(inspect.signature(thing))
    except (TypeError, ValueError):
        return ""
    return re.sub(r": '[^']*'|: [A-Za-z_\.\[\]| ]+(?=[,=)])| -> .*$", "", text)


def body(doc: str) -> str:
    """A numpydoc docstring as HTML: headings, lists of terms, code, paragraphs."""
    out: list[str] = []
    lines = inspect.cleandoc(doc).splitlines()
    k = 0
    while k < len(lines):
        line = lines[k]
        under = lines[k + 1] if k + 1 < len(lines) else ""
        if under and set(under.strip()) == {"-"}:
            out.append(f"<h4>{html.escape(line)}</h4>")
            k += 2
        elif line.startswith(">>>"):
            block = []
            while k < len(lines) and lines[k].strip():
                block.append(lines[k])
                k += 1
            out.append(f"<pre>{html.escape(chr(10).join(block))}</pre>")
        elif line.strip() and not line.startswith(" ") and under.startswith("    "):
            out.append(f"<dl><dt>{_inline(line)}</dt><dd>")
            k += 1
            while k < len(lines) and (lines[k].startswith("    ") or not lines[k].strip()):
                if not lines[k].strip() and not (k + 1 < len(lines) and lines[k + 1].startswith("    ")):
                    break
                out.append(_inline(lines[k].strip()) + "\n")
                k += 1
            out.append("</dd></dl>")
        elif line.startswith("    "):
            out.append(f"<pre>{html.escape(line.strip())}</pre>")
            k += 1
        elif line.strip():
            paragraph = []
            while k < len(lines) and lines[k].strip() and not lines[k].startswith((">>>", "    ")):
                if k + 1 < len(lines) and lines[k + 1].strip() and set(lines[k + 1].strip()) == {"-"}:
                    break
                paragraph.append(lines[k])
                k += 1
            out.append(f"<p>{_inline(' '.join(paragraph))}</p>")
        else:
            k += 1
    return "".join(out)


def _inline(text: str) -> str:
    text = re.sub(r":\w+:`~?([^`]*)`", r"``\1``", text)
    return re.sub(r"``([^`]*)``|`([^`]*)`", lambda m: f"<code>{m[1] or m[2]}</code>", html.escape(text))


def methods(cls: type) -> str:
    """The public methods a class defines or inherits from hinge, one line each."""
    rows = []
    for name, member in inspect.getmembers(cls, callable):
        home = getattr(member, "__module__", "") or ""
        if name.startswith("_") or not home.startswith("hinge") or not getattr(member, "__doc__", None):
            continue
        first = inspect.cleandoc(member.__doc__).splitlines()[0]
        rows.append(
            f"<dt><code>{name}{html.escape(signature(member).replace('(self, ', '(').replace('(self)', '()'))}</code></dt><dd>{_inline(first)}</dd>"
        )
    return f"<h4>Methods</h4><dl>{''.join(rows)}</dl>" if rows else ""


def ranges(cls: type) -> str:
    """The parameters of an estimator with their defaults and ranges, from its declarations."""
    rows = [
        f"<tr><td><code>{name}</code></td><td><code>{html.escape(default)}</code></td><td>{html.escape(accepted)}</td></tr>"
        for name, default, accepted in table(cls)
    ]
    head = "<tr><th>parameter</th><th>default</th><th>range</th></tr>"
    return f"<h4>Ranges</h4><table>{head}{''.join(rows)}</table>" if rows else ""


def entry(name: str) -> str:
    thing = attrgetter(name)(hinge)
    kind = "class " if inspect.isclass(thing) else ""
    shown = f"{kind}<b>{name}</b>{html.escape(signature(thing))}"
    doc = body(thing.__doc__ or "")
    more = methods(thing) if inspect.isclass(thing) else ""
    if inspect.isclass(thing) and issubclass(thing, Estimator):
        more = ranges(thing) + more
    return f'<section class="entry" id="{name}"><code class="signature">{shown}</code>{doc}{more}</section>'


def reference() -> str:
    """The whole page, without its frame."""
    parts = ["<h1>Reference</h1><p>Every public name, from its docstring. <code>import hinge as hg</code>.</p>"]
    for title, names in groups().items():
        index = ", ".join(f'<a href="#{name}">{name}</a>' for name in names)
        parts.append(f"<h2>{title}</h2><p>{index}</p>" + "".join(entry(name) for name in names))
    return "".join(parts)
