"""Writes docs/reference from the docstrings of the public headers, or with --check says whether it
is up to date.

A docstring is what stands behind `///` above a declaration. A public name without one, and a name
that no compiled example shows, are errors. Names in `detail` namespaces are not public, nor are
members whose names end with `_`. The headers are read as they are formatted: by the repository's
clang-format, without macros.
"""

import dataclasses
import html
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
FOLDER = ROOT / "docs" / "reference"

# Title, what the page has, headers in reading order.
PAGES = {
    "layers": ("Layers", "Cells with parameters, what puts them together, and ready nets.", """
        nn/layers nn/recurrent nn/attention nn/functions
        models/mlp models/lenet models/resnet models/gpt"""),
    "losses": ("Losses", "What training makes smaller.", "train/step nn/losses ops/loss"),
    "optimizers": ("Optimizers", "Rules, what wraps them, and how a step of one's own calls them.", """
        optim/optimizers optim/clip optim/accumulate optim/averaged optim/parts optim/frozen
        optim/apply optim/context optim/update"""),
    "schedules": ("Schedules", "Learning rates that depend on the step.", "optim/schedules"),
    "metrics": ("Metrics", "What predictions are worth.", "train/metrics"),
    "callbacks": ("Callbacks", "What `fit` calls, is told and returns.",
                  "train/fit train/callbacks train/monitors train/progress train/interrupt train/state"),
    "data": ("Data", "Data sets, views, loaders, readers and augmentation.", """
        data/dataset data/composable data/views data/loader data/csv data/mnist data/idx data/digits
        data/augment data/sample data/batch data/tensor data/xtensor"""),
    "transforms": ("Transforms", "Functions of functions: derivatives, loops, branches, batches.", """
        transform/gradient transform/jacobian transform/vmap transform/control
        transform/recursion transform/custom"""),
    "models": ("Models", "A net with a loss and an optimizer: trained, measured, asked and saved.",
               "train/model train/input train/predictions train/predictor train/average_scope"),
    "programs": ("Programs", "What runs without a model: programs, stores of parameters, kernels.", """
        runtime/program runtime/parameters runtime/executable runtime/compile
        runtime/summary runtime/explain"""),
}
# Compiled files that examples are taken from; of equals the first.
EXAMPLES = ["tests/docs/reference.cpp", "tests/docs/*.cpp", "examples/*.cpp", "tests/docs/*/*.cpp"]


def fail(message):
    sys.exit("docs/reference.py: " + message)


# ---- reading headers


@dataclasses.dataclass
class Item:
    """A declaration: its docstring, and its text up to the body."""
    doc: str
    head: str
    text: str  # all of it, if it has a body
    inside: str  # the body
    line: int


@dataclasses.dataclass
class Entry:
    name: str  # with its namespace below cella
    kind: str
    header: str
    items: list
    members: list
    example: tuple = None


def skip_literal(text, at):
    """The place behind the comment or literal that begins at `at`, or `at`."""
    if text.startswith("//", at):
        return text.index("\n", at)
    if text[at] in "\"'" and not (text[at] == "'" and text[at - 1].isdigit()):
        quote, at = text[at], at + 1
        while text[at] != quote:
            at += 2 if text[at] == "\\" else 1
        return at + 1
    return at


def without_comments(text):
    out, at = [], 0
    while at < len(text):
        end = skip_literal(text, at)
        if end == at:
            out.append(text[at])
            at += 1
        else:
            if not text.startswith("//", at):
                out.append(text[at:end])
            at = end
    return " ".join("".join(out).split())


def items_of(text, first_line):
    """The declarations of a namespace or a class, in order; labels such as `public:` are heads."""
    at, doc, line = 0, [], first_line
    while at < len(text):
        if text[at].isspace():
            # A blank line parts a docstring from what follows.
            if text.startswith("\n\n", at):
                doc = []
            line += text[at] == "\n"
            at += 1
            continue
        if text.startswith("//", at) or text[at] == "#":
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            if text.startswith("///", at):
                doc.append(text[at + 3:end])
            at = end
            continue
        if text[at] in "};":
            at += 1
            continue
        label = re.match(r"(public|private|protected):", text[at:])
        if label:
            yield Item("", label.group(0), "", "", line)
            at += label.end()
            doc = []
            continue
        begin, depth, body = at, 0, None
        while True:
            end = skip_literal(text, at)
            if end != at:
                at = end
                continue
            c = text[at]
            at += 1
            if c in "([":
                depth += 1
            elif c in ")]":
                depth -= 1
            elif c == "{":
                if depth == 0:
                    body = at
                depth += 1
            elif c == "}":
                depth -= 1
                rest = text[at:].lstrip()
                if depth == 0 and not re.match(r"[;,)({>]|\|\||&&|\.|->|::", rest):
                    break
            elif c == ";" and depth == 0:
                break
        head = text[begin:body - 1 if body else at - 1]
        after = re.match(r"[ ]*///<(.*)", text[at:])
        text_of_doc = list(doc)
        if after:
            text_of_doc.append(after.group(1))
            following = at + after.end()
            at = following
            # The rest of a remark behind a member stands in lines of its own, further right.
            while more := re.match(r"\n {12,}///<?(.*)", text[at:]):
                text_of_doc.append(more.group(1))
                at += more.end()
        yield Item("\n".join(l.removeprefix(" ") for l in text_of_doc), head,
                   text[begin:at] if body else "", text[body:at].rstrip("; ")[:-1] if body else "", line)
        line += text[begin:at].count("\n")
        doc = []


def split_namespaces(text):
    """Pairs of a namespace and its text, line numbers kept by empty lines in front."""
    stack, parts = [], {}
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        opens = re.match(r"namespace ?([\w:]*) ?\{(.*)\}?$", line.rstrip("\n"))
        if opens and not line.rstrip().endswith("}"):
            stack.append(opens.group(1))
        elif line.startswith("}  // namespace"):
            stack.pop()
        elif stack:
            space = "::".join(stack)
            part = parts.setdefault(space, [[], 0])
            part[0].append("\n" * (number - part[1] - 1) + line)
            part[1] = number
    return [(space, "".join(lines)) for space, (lines, _) in parts.items()]


TEMPLATE = r"template <"


def without_template(head):
    """A declaration without `template <...>` and `requires` in front of it."""
    head = head.strip()
    while head.startswith(TEMPLATE):
        depth = 0
        for at, c in enumerate(head):
            depth += c == "<"
            depth -= c == ">" and head[at - 1] != "-"
            if c == ">" and depth == 0:
                head = head[at + 1:].strip()
                break
        else:
            fail("an unclosed template parameter list: " + head)
    # A constraint ends with its line.
    while head.startswith("requires"):
        head = head.split("\n", 1)[1].strip() if "\n" in head else ""
    return head


def kind_and_name(head):
    """What is declared; the name is None for what has none of its own."""
    clean = without_template(re.sub(r"//.*", "", head))
    if re.match(r"(static_assert|extern|friend|namespace|using namespace|using enum)\b", clean):
        return None, None
    if m := re.match(r"using ([\w]+) =", clean):
        return "type", m.group(1)
    if re.match(r"using ", clean):
        return None, None
    if m := re.match(r"concept (\w+)", clean):
        return "concept", m.group(1)
    if m := re.match(r"enum class (\w+)", clean):
        return "enumeration", m.group(1)
    if re.match(r"(class|struct) \w+::", clean):
        return None, None
    if m := re.match(r"(?:class|struct)(?: \[\[\w+\]\])?(?: alignas\(\d+\))? (\w+)(<)?", clean):
        return (None, None) if m.group(2) else ("class", m.group(1))
    before = clean.split("(", 1)[0]
    if re.search(r"(?<!std)(?<!cella)(?<!optim)(?<!detail)(?<!interop)(?<!data)::\w+\s*$", before) and "(" in clean:
        return None, None  # the definition of a member
    if m := re.search(r"(operator.{1,3}|[~\w]+)$", before.rstrip()):
        if "(" in clean and "=" not in before.replace("operator=", "").replace("==", ""):
            if re.match(r"[\w:<>, ]*::(operator|\w+$)", before) and re.search(r">?::" + re.escape(
                    m.group(1)) + "$", before.rstrip()) and not before.rstrip().startswith("std::"):
                return None, None
            if ") ->" in clean and re.match(r"\w+\(", clean):
                return None, None  # a deduction guide
            return "function", m.group(1)
    if m := re.search(r"(\w+)(?:\[.*\])?\s*(?:=.*)?$", clean, re.S):
        name = re.match(r"[^={]*?(\w+)\s*(?:=|\{|$)", clean)
        return "value", name.group(1) if name else m.group(1)
    return None, None


def signature(head):
    """A declaration in one or more lines, without what initializes members."""
    head = without_comments_by_line(head)
    depth = 0
    for at, c in enumerate(head):
        depth += c in "([{"
        depth -= c in ")]}"
        if depth == 0 and head[at:at + 2] in (" :", "\n:") and head[at + 2] in " \n" and ")" in head[:at]:
            head = head[:at]
            break
    lines = head.strip().splitlines()
    indent = min((len(l) - len(l.lstrip()) for l in lines[1:] if l.strip()), default=0)
    drop = 2 if lines[1:] and indent >= 2 and lines[0].startswith("template") else 0
    return "\n".join([lines[0].strip()] + [l[min(indent, 2) if drop or indent == 2 else 0:].rstrip()
                                           for l in lines[1:]])


def without_comments_by_line(text):
    return "\n".join(l for l in (re.sub(r"\s*//.*", "", l) for l in text.splitlines()) if l.strip())


def members_of(item, key):
    shown, public = [], key == "struct"
    for m in items_of(item.inside, 0):
        if re.match(r"(public|private|protected):", m.head):
            public = m.head == "public:"
            continue
        if not public or re.search(r"= delete$", m.head.strip()):
            continue
        kind, name = kind_and_name(m.head)
        if not kind or name.endswith("_") or name.startswith("~") or name == "operator=":
            continue
        head = m.head
        if kind == "value":  # with its default
            full = m.text.rstrip("; \n") if m.text else head
            if m.text and not full.startswith(head):
                fail("a strange member: " + head)
            head = full
        if kind == "enumeration":
            head = m.text
        shown.append((signature(head), m.doc))
    return shown


def entries_of(path):
    """The public names of a header. Of overloads the first has the docstring, or all have."""
    text = (INCLUDE / "cella" / (path + ".hpp")).read_text()
    header = f"cella/{path}.hpp"
    found = {}
    for space, part in split_namespaces(text):
        if not space.startswith("cella") or "detail" in space.split("::"):
            continue
        prefix = "::".join(space.split("::")[1:])
        for item in items_of(part, 1):
            kind, name = kind_and_name(item.head)
            if not kind:
                continue
            full = (prefix + "::" if prefix else "") + name
            if kind == "class" and not item.text:
                continue  # declared here, defined elsewhere
            if kind == "enumeration":
                item.head = item.text
            if kind == "concept":
                item.head = re.sub(r" =[\s\S]*", "", item.head)
            if kind == "value":
                item.head = (item.text or item.head)
            known = found.get(full)
            if known:
                same = [parameters(i.head) for i in known.items]
                if item.doc or parameters(item.head) not in same:
                    known.items.append(item)
                continue
            if not item.doc:
                fail(f"include/{header}:{item.line}: {full} is public and has no docstring")
            key = re.search(r"\b(class|struct)\b", without_template(item.head)) if kind == "class" else None
            members = members_of(item, key.group(1)) if key else []
            found[full] = Entry(full, kind, header, [item], members)
    return list(found.values())


def parameters(head):
    """What tells overloads apart: the parameters without their defaults."""
    head = without_comments(head)
    return re.sub(r" = [^,)]+", "", head[head.find("("):]) if "(" in head else head


# ---- examples


def statement_around(lines, at):
    """The statement that line `at` belongs to, as a range of lines, or None if it is long."""
    first = at
    while first > 0 and not re.search(r"[;{}:]$|^\s*$|//|^#", lines[first - 1]):
        first -= 1
    last = at
    while last + 1 < len(lines) and not re.search(r"[;{}]$", lines[last]):
        last += 1
    if last - first > 4 or not re.search(r"[;}]$|\{$", lines[last]):
        return None
    return first, last


def find_example(name, files):
    last = name.split("::")[-1]
    qualified = r"(?<![\w])" + re.escape(name) + r"(?!\w)"
    short = r"(?<![\w:.])" + re.escape(last) + r"(?!\w)"
    for path, lines in files:
        best = None
        for at, line in enumerate(lines):
            code = re.sub(r"//.*|\"(\\.|[^\"\\])*\"", "", line)
            member = last in MEMBERS_OF_VIEWS and re.search(r"\." + MEMBERS_OF_VIEWS[last] + r"\b", code)
            if line.startswith("#") or line.startswith("using namespace"):
                continue
            if not (re.search(qualified, code) or (name == last or "reference.cpp" in path) and re.search(short, code) or member):
                continue
            place = statement_around(lines, at)
            if place and (best is None or place[1] - place[0] < best[1] - best[0]):
                best = place
        if best:
            return path, best[0] + 1, dedent(lines[best[0]:best[1] + 1])
    return None


# What only members of data sets make.
MEMBERS_OF_VIEWS = {"shuffled": "shuffle", "mapped": "map", "converted": "map_to", "repeated": "repeat",
                    "sliced": "take"}


def dedent(lines):
    indent = min(len(l) - len(l.lstrip()) for l in lines if l.strip())
    return "\n".join(l[indent:] for l in lines)


def example_files():
    seen, files = set(), []
    for pattern in EXAMPLES:
        for path in sorted(ROOT.glob(pattern)):
            if path not in seen:
                seen.add(path)
                files.append((str(path.relative_to(ROOT)), path.read_text().splitlines()))
    return files


# ---- writing


def summary(doc):
    """The first sentence."""
    text = " ".join(re.split(r"\n\s*\n", doc)[0].split())
    m = re.match(r"(.+?[.:!?])(?= +[A-Z`({]|$)", text)
    return (m.group(1) if m else text).rstrip(":")


def blocks(doc):
    """The docstring as paragraphs and blocks of code: (is_code, text)."""
    out = []
    for line in doc.splitlines():
        code = line.startswith("  ") and line.strip()
        if not line.strip():
            out.append((None, ""))
        elif out and out[-1][0] == bool(code):
            out[-1] = (out[-1][0], out[-1][1] + "\n" + line)
        else:
            out.append((bool(code), line))
    return [(c, dedent(t.splitlines()) if c else " ".join(t.split())) for c, t in out if c is not None]


def anchor(name):
    return re.sub(r"[^\w]+", "-", name).strip("-").lower()


def cpp(text):
    return f"```cpp\n{text}\n```"


def markdown(title, sentence, entries):
    out = [f"# {title}", "", sentence, "",
           "Made from the headers by `python3 docs/reference.py`; [all names in one page](index.html).", "",
           "| name | | header |", "| --- | --- | --- |"]
    for e in entries:
        first = summary(e.items[0].doc).replace("|", "\\|")
        out.append(f"| [`{e.name}`](#{anchor(e.name)}) | {first} | `{e.header}` |")
    for e in entries:
        out += ["", f'<a id="{anchor(e.name)}"></a>', "", f"## `{e.name}`", "",
                f"{e.kind}, [`{e.header}`](../../include/{e.header})"]
        for i in e.items:
            out += ["", cpp(signature(i.head) + (";" if e.kind == "function" else ""))]
            for code, text in blocks(i.doc):
                out += ["", cpp(text) if code else text]
        if e.members:
            out += ["", "Members:", ""]
            for head, doc in e.members:
                words = " ".join(doc.split())
                out.append(f"- `{' '.join(head.split())}`" + (f": {words}" if words else ""))
        path, line, text = e.example
        out += ["", f"Example, from [{path}](../../{path}#L{line}):", "", cpp(text)]
    return "\n".join(out) + "\n"


def rich(text):
    """Text of a docstring: `code` in backticks becomes code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def pre(text):
    return f"<pre>{html.escape(text, quote=False)}</pre>"


PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Cella: reference</title>
<style>
:root { color-scheme: light dark; --line: #8885; --soft: #8881; --link: light-dark(#0b57a4, #8ab8f0); }
body { margin: 0; font: 16px/1.5 system-ui, sans-serif; display: grid; grid-template-columns: 19rem 1fr; }
nav { position: sticky; top: 0; height: 100vh; overflow: auto; box-sizing: border-box; padding: 1rem;
  border-right: 1px solid var(--line); }
main { padding: 1rem 2rem 4rem; max-width: 62rem; min-width: 0; }
input { width: 100%; box-sizing: border-box; font: inherit; padding: .4rem .6rem; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
nav h2 { font-size: .85rem; margin: 1rem 0 .2rem; }
nav a { display: block; font: 13px/1.6 ui-monospace, monospace; overflow-wrap: anywhere; }
section { border-top: 1px solid var(--line); padding: .8rem 0; scroll-margin-top: 1rem; }
h3 { margin: 0; font: 600 1.05rem ui-monospace, monospace; overflow-wrap: anywhere; }
.where { font-size: .85rem; opacity: .75; margin: 0 0 .4rem; }
pre { background: var(--soft); padding: .6rem .8rem; overflow: auto; font: 13px/1.45 ui-monospace, monospace; }
code { font: .9em ui-monospace, monospace; background: var(--soft); padding: 0 .2em; }
dt { font: 13px/1.5 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
dd { margin: 0 0 .4rem 1.5rem; }
summary { cursor: pointer; }
[hidden] { display: none !important; }
@media (max-width: 50rem) { body { display: block; } nav { position: static; height: auto; max-height: 40vh;
  border-right: 0; border-bottom: 1px solid var(--line); } main { padding: 1rem; } }
</style>
<nav>
<input id="words" type="search" placeholder="Search names and text" aria-label="Search" autofocus>
<p id="count" class="where" role="status"></p>
$NAV
</nav>
<main>
<h1>Cella: reference</h1>
<p>Every public name of layers, losses, optimizers, schedules, metrics, callbacks, data, transforms, models
and programs, from the docstrings of the headers. Operations have
<a href="../operations.md">a table of their own</a>. Names stand in the namespace <code>cella</code>.</p>
$MAIN
</main>
<script>
const words = document.getElementById('words'), count = document.getElementById('count');
const sections = [...document.querySelectorAll('section')].map(s => ({ s, id: s.id, name: s.dataset.name,
  text: s.textContent.toLowerCase(), link: document.querySelector(`nav a[href="#${CSS.escape(s.id)}"]`) }));
const groups = [...document.querySelectorAll('[data-group]')];
function search() {
  const asked = words.value.toLowerCase().split(/\\s+/).filter(Boolean);
  let found = 0;
  for (const e of sections) {
    const fits = asked.every(w => e.text.includes(w));
    e.s.hidden = e.link.hidden = !fits;
    // Names that have the words come first: the others are found by their text.
    e.s.style.order = asked.length && asked.every(w => e.name.includes(w)) ? -1 : 0;
    found += fits;
  }
  for (const g of groups) g.hidden = !g.querySelector(':is(section, a):not([hidden])');
  count.textContent = asked.length ? `${found} of ${sections.length} names` : `${sections.length} names`;
}
words.addEventListener('input', search);
search();
</script>
</html>
"""


def web_page(pages):
    nav, main = [], []
    for title, sentence, entries in pages.values():
        nav.append(f'<div data-group><h2>{title}</h2>')
        main.append(f'<div data-group><h2>{title}</h2><p>{rich(sentence)}</p>')
        for e in entries:
            nav.append(f'<a href="#{anchor(e.name)}">{html.escape(e.name)}</a>')
            main.append(f'<section id="{anchor(e.name)}" data-name="{html.escape(e.name.lower())}">'
                        f'<h3>{html.escape(e.name)}</h3>'
                        f'<p class="where">{e.kind}, &lt;{e.header}&gt;</p>')
            for i in e.items:
                main.append(pre(signature(i.head) + (";" if e.kind == "function" else "")))
                main += [pre(t) if code else f"<p>{rich(t)}</p>" for code, t in blocks(i.doc)]
            if e.members:
                main.append(f"<details><summary>{len(e.members)} members</summary><dl>")
                for head, doc in e.members:
                    main.append(f"<dt>{html.escape(head, quote=False)}</dt><dd>{rich(' '.join(doc.split()))}</dd>")
                main.append("</dl></details>")
            path, line, text = e.example
            main.append(f'<p class="where">Example, from <a href="../../{path}">{path}</a>, line {line}:</p>{pre(text)}'
                        "</section>")
        nav.append("</div>")
        main.append("</div>")
    return PAGE.replace("$NAV", "\n".join(nav)).replace("$MAIN", "\n".join(main))


def read_pages():
    files, pages, lacking = example_files(), {}, []
    for key, (title, sentence, headers) in PAGES.items():
        entries = [e for h in headers.split() for e in entries_of(h)]
        for e in entries:
            e.example = find_example(e.name, files)
            if not e.example:
                lacking.append(f"{e.header}: {e.name}")
        pages[key] = (title, sentence, entries)
    if lacking:
        fail("no compiled example shows these; add one to tests/docs/reference.cpp:\n  " + "\n  ".join(lacking))
    return pages


def contents(pages):
    out = ["# Reference", "", "All public names, from the docstrings of the headers. [index.html](index.html) is the same in "
           "one page with a search; it needs no server.", "", "| page | names |", "| --- | --- |"]
    for key, (title, sentence, entries) in pages.items():
        out.append(f"| [{title}]({key}.md) | {sentence} {len(entries)} names |")
    return "\n".join(out) + "\n"


def main():
    pages = read_pages()
    written = {f"{key}.md": markdown(*page) for key, page in pages.items()}
    written["index.html"] = web_page(pages)
    written["README.md"] = contents(pages)
    if "--check" in sys.argv:
        old = [n for n, t in written.items()
               if not (FOLDER / n).exists() or (FOLDER / n).read_text() != t]
        if old:
            fail(f"docs/reference is not what the headers say ({', '.join(old)}); run python3 docs/reference.py")
        return
    FOLDER.mkdir(exist_ok=True)
    for name, text in written.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
