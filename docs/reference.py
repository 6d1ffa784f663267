"""Writes docs/reference from the docstrings of the public headers, or says whether it is up to date.

A docstring is what stands behind `///` above a declaration. An example is the shortest statement of a compiled file
that uses the name. A public name without one of them is an error. Names in `detail` namespaces are not public, nor are
members whose names end with `_`. The headers are read as they are formatted: by the repository's clang-format, without
macros.
"""

import argparse
import dataclasses
import functools
import html
import os
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "include"
FOLDER = ROOT / "docs" / "reference"

# Title, what the page has, headers in reading order.
PAGES = {
    "layers": ("Layers", "Cells with parameters, what puts them together, and ready nets.", """
        nn/layers nn/convolutions nn/pooling nn/activations nn/norms nn/initializers nn/embedding_bag
        nn/recurrent nn/recurrent_net nn/attention nn/grouped_attention nn/masks nn/positions nn/transformer nn/mixture_of_experts
        nn/functions
        models/mlp models/lenet models/resnet models/mobilenet models/unet models/vit models/bert models/gpt models/gpt_decoder
        models/switch_gpt"""),
    "elements": ("Functions of elements", "Arithmetic, comparisons, activations, conversions: what is computed element by element, or printed.", """
        ops/arithmetic ops/exponential ops/elementwise ops/functions ops/activation ops/trigonometry ops/special ops/magnitude
        ops/rounding ops/comparison ops/bitwise ops/complex ops/polar ops/numeric ops/cast ops/quantization
        ops/print"""),
    "arrays": ("Arrays", "Tensors made, cut, joined, rearranged, looked up and sorted.", """
        ops/creation ops/constant ops/array ops/arranging ops/broadcast ops/slicing ops/padding ops/indexing ops/put_rows
        ops/segments ops/one_hot ops/diagonal ops/sorting ops/axis_list"""),
    "sums": ("Sums and statistics", "What takes axes away, or runs along one.", """
        ops/reduction ops/prod ops/cumulative ops/statistics ops/softmax ops/normalization ops/batch_norm"""),
    "products": ("Products", "Products of matrices, linear algebra, attention, Fourier transforms.", """
        ops/matmul ops/einsum ops/linear_algebra ops/decompositions ops/attention ops/sparse ops/integer_products
        ops/fourier ops/signal"""),
    "images": ("Windows and images", "Convolutions, pools, and what is done with pictures.", """
        ops/window ops/convolution ops/convolution_nd ops/pooling ops/pooling_nd ops/image ops/resampling ops/sampling
        ops/regions ops/color"""),
    "random": ("Random numbers", "Numbers that the random state of a program gives.",
               "ops/random ops/random_distributions ops/random_choice"),
    "losses": ("Losses", "What training makes smaller.", """
        train/step nn/losses ops/loss nn/regression_losses nn/classification_losses nn/embedding_losses
        nn/ctc_loss"""),
    "optimizers": ("Optimizers", "Rules, what wraps them, and how a step of one's own calls them.", """
        optim/optimizers optim/lion optim/layerwise optim/muon optim/lbfgs optim/kfac optim/proximal optim/lazy optim/clip
        optim/accumulate optim/averaged optim/loss_scale optim/parts optim/frozen
        optim/apply optim/context optim/update"""),
    "schedules": ("Schedules", "Learning rates that depend on the step.",
                  "optim/schedules optim/cycles optim/decays train/plateau"),
    "distributions": ("Distributions", "Samples, log-probabilities, entropies and divergences.",
                      """distributions/continuous distributions/gamma distributions/multivariate_normal distributions/discrete
                      distributions/composed"""),
    "metrics": ("Metrics", "What predictions are worth.", """
        train/metrics train/class_metrics train/regression_metrics train/mask_metrics train/text_metrics"""),
    "callbacks": ("Callbacks", "What `fit` calls, is told and returns.",
                  "train/fit train/callbacks train/monitors train/progress train/interrupt train/state"),
    "data": ("Data", "Data sets, views, loaders, readers and augmentation.", """
        data/dataset data/composable data/views data/loader data/csv data/mnist data/idx data/digits
        data/augment data/sample data/batch data/tensor data/xtensor data/terminal_image data/terminal"""),
    "transforms": ("Transforms", "Functions of functions: derivatives, loops, branches, batches.", """
        transform/gradient transform/jacobian transform/vmap transform/control
        transform/recursion transform/custom"""),
    "models": ("Models", "A net with a loss and an optimizer: trained, measured, asked and saved.",
               "train/model train/model_options train/input train/predictions train/predictor train/average_scope train/on_mesh"),
    "programs": ("Programs", "What runs without a model: programs, stores of parameters, kernels.", """
        runtime/program runtime/parameters runtime/executable runtime/compile
        runtime/array_like runtime/loaded_program train/slots runtime/summary runtime/explain"""),
}
# Headers of the same rooms that users need not know, besides `*_body.hpp`. A new header belongs here or on a page.
INNER_HEADERS = set("""
    data/batch_share data/gzip nn/other_names optim/layer_gradient
    ops/applicable ops/application ops/batching ops/bounds ops/compute ops/control ops/cost ops/declaration ops/eigen_kernels
    ops/emit_faults ops/fourier_kernels ops/free_signs ops/indexed_places ops/kinds ops/list ops/matrix_kernels ops/move_row
    ops/names ops/no_operation ops/no_standard_function ops/numbers ops/op ops/pooling_windows ops/product_form ops/sparse_product
    ops/strided ops/var_list
    transform/batch transform/body transform/branching transform/directions transform/forward transform/forward_control
    transform/pullback transform/region transform/reverse_control transform/reverse_loops transform/split
    transform/trace transform/values transform/control_forms transform/no_control transform/no_transform
    train/batch_columns train/call_forms train/callback_faults train/checkpoint train/columns train/development train/engine
    train/engine_checks train/fit_extras train/kept_tensors train/lazy train/mesh_trainer train/model_faults train/model_loops train/no_fit_option
    train/optimizer_graph train/position train/shared_reading
    train/parameter_users train/runtime_path train/traced_net train/traced_steps
    runtime/address_book runtime/call_labels runtime/columns runtime/compiled_once runtime/interpreter
    runtime/profile runtime/program_arguments runtime/program_memory runtime/program_names runtime/program_results
    runtime/recently_used runtime/step_formulas runtime/step_number runtime/struct_arguments""".split())
# Public names that only Cella's own headers use.
INNER = {"data::batch_range", "optim::named_ends", "optim::named_options", "make_stand_in", "parameter_signature", "data::typed_buffer",
         "axes_options", "varying_axes", "batch_norm_options", "convolution_options"}
# Compiled files that examples are taken from, of the first of these that has one; {room} is the header's folder.
EXAMPLES = ["tests/docs/*.cpp examples/*.cpp tests/docs/tutorial/*", "tests/{room}/*.?pp",
            "tests/data/*.?pp tests/loaded/*.cpp tests/optim/*.?pp tests/runtime/*.?pp tests/train/*.?pp "
            "tests/transform/*.?pp"]


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
            while text[at] == "#" and text[end - 1] == "\\":  # a definition goes on in the next line
                end = text.find("\n", end + 1)
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
    if re.match(r"(static_assert|extern|friend|namespace|using namespace|using enum|__attribute__|CELLA_NO_\w+)\b", clean):
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
        if not kind or name.endswith("_") or name.startswith("~") or name in ("operator=", "by_name"):
            continue
        if "no_unique_address" in m.head:  # a name from elsewhere, which is refused
            continue
        head = m.head
        if kind in ("value", "type"):  # with its default, or with the braces of its arguments
            full = m.text.rstrip("; \n") if m.text else head
            if m.text and not full.startswith(head):
                fail("a strange member: " + head)
            head = full
        if kind == "enumeration":
            head = m.text
        shown.append((signature(head).rstrip(";"), m.doc))
    return shown


def entries_of(path):
    """The public names of a header. Of overloads the first has the docstring, or all have."""
    # What kernels.cpp compiles for all is no matter of the user's.
    text = (INCLUDE / "cella" / (path + ".hpp")).read_text().replace("CELLA_ONCE ", "")
    header = f"cella/{path}.hpp"
    found = {}
    for space, part in split_namespaces(text):
        if not space.startswith("cella") or "detail" in space.split("::"):
            continue
        prefix = "::".join(space.split("::")[1:])
        for item in items_of(part, 1):
            kind, name = kind_and_name(item.head)
            if not kind or re.search(r"= delete$", item.head.strip()):
                continue
            full = (prefix + "::" if prefix else "") + name
            if full in INNER or kind == "class" and (not item.text or name.endswith("_op")):
                continue  # defined elsewhere; of operations docs/operations.md tells
            if path.startswith("ops/") and name.startswith("operator") and not item.doc:
                continue  # the one with a docstring speaks for all
            if kind == "function" and "detail::no_" in item.head:
                continue  # what is refused, with a sentence
            if kind == "enumeration":
                item.head = item.text
            if kind == "concept":
                item.head = re.sub(r" =[\s\S]*", "", item.head)
            if kind in ("value", "type"):
                item.head = (item.text or item.head)
            known = found.get(full)
            if known:
                same = [parameters(i.head) for i in known.items]
                if item.doc or parameters(item.head) not in same:
                    known.items.append(item)
                continue
            item.doc = item.doc or formulas().get(full, "")
            if not item.doc:
                fail(f"include/{header}:{item.line}: {full} is public and has no docstring")
            key = re.search(r"\b(class|struct)\b", without_template(item.head)) if kind == "class" else None
            members = members_of(item, key.group(1)) if key else []
            found[full] = Entry(full, kind, header, [item], members)
    return list(found.values())


@functools.cache
def formulas():
    """What functions without a docstring compute, by the structs of their operations: `sqrt` is `sqrt_op`."""
    found = {}
    for path in sorted((INCLUDE / "cella" / "ops").glob("*.hpp")):
        for name, body in re.findall(r"^struct (\w+)_op\b(.*?)^\};", path.read_text(), re.M | re.S):
            if m := re.search(r'formula =\s+((?:"[^"]*"\s*)+);', body):
                found[name] = "`" + "".join(re.findall(r'"([^"]*)"', m.group(1))) + "`"
    return found


def parameters(head):
    """What tells overloads apart: the parameters without their defaults."""
    head = without_comments(head)
    return re.sub(r" = [^,)]+", "", head[head.find("("):]) if "(" in head else head


# ---- examples


def statement_around(lines, at):
    """The statement that line `at` belongs to, as its first and last line, or None if it is long. One that
    opens a block ends where the block does."""
    first = at
    while first > 0 and not re.search(r"[;{}:]$|^\s*$|//|^#", lines[first - 1]):
        first -= 1
    last = at
    while last + 1 < len(lines) and not re.search(r"[;{}]$", lines[last]):
        last += 1
    if last - first > 5:
        return None
    depth = sum(without_text(l).count("{") - without_text(l).count("}") for l in lines[first:last + 1])
    while depth > 0 and last + 1 < len(lines) and last - first < 12:
        last += 1
        depth += without_text(lines[last]).count("{") - without_text(lines[last]).count("}")
    return (first, last) if depth == 0 and re.search(r"[;}]$", lines[last]) else None


def without_text(line):
    """A line of code without its comment and what stands in quotes."""
    return re.sub(r"//.*|\"(\\.|[^\"\\])*\"", "", line)


def uses(entry):
    """What a use of the name looks like: a function from a file's text to a pattern."""
    *spaces, last = entry.name.split("::")
    # What follows a name of one word: it may also be a variable's.
    template = entry.kind in ("class", "type", "concept") and entry.items[0].head.lstrip().startswith("template")
    follows = {"function": "(?=[<(])"}.get(entry.kind, "(?=<)" if template else r"(?=[<({\])>,:&*]| \w)")
    forms = [rf"(?<![\w:.>])(?:cella::)?{re.escape(entry.name)}" + (r"(?!\w)" if spaces else follows)]
    if not spaces:
        forms.append(rf"(?<!\w)cella::{last}(?!\w)")
    if entry.name in MEMBERS_OF_VIEWS:
        forms.append(rf"\.(template )?{MEMBERS_OF_VIEWS[entry.name]}(<[^;()]*>)?\(")
    if entry.name.endswith("_options"):
        forms = [f + r"(?=.*{\.)" for f in forms]
    bare = rf"(?<![\w:.>]){re.escape(last)}(?=[<({{]|::| \w)"
    opened = re.compile(rf"using namespace cella::{'::'.join(spaces)};|namespace cella::{'::'.join(spaces)} "
                        rf"|using (cella::)?{entry.name};")

    def pattern(text):
        return re.compile("|".join(forms + [bare] if spaces and opened.search(text) else forms))
    return pattern


def how_odd(statement):
    """Less for what a user would write, more for what tests say."""
    return bool(re.search(r"CHECK|REQUIRE|check_", statement)) + 2 * bool(
        re.search(r"THROWS|refused\(|fault|detail::|misspelt", statement))


def find_example(pattern_for, header):
    """The shortest statement that fits, in the first files that have one: its file, its line, and it."""
    for patterns in EXAMPLES:
        found = []
        for path, lines, text in files_of(patterns.replace("{room}", header.split("/")[1])):
            pattern = pattern_for(text)
            for at, line in enumerate(lines):
                if re.match(r"#|using (namespace |[\w:]+;)|namespace ", line) or not pattern.search(without_text(line)):
                    continue
                place = statement_around(lines, at)
                inner = re.search(r"\{ (return (?:[^{};]|\{[^{}]*\})*;) \}", line)
                if inner and pattern.search(inner.group(1)):
                    found.append((0, 0, len(inner.group(1)), path, at + 1, inner.group(1)))
                elif place:
                    shown = dedent(lines[place[0]:place[1] + 1])
                    found.append((how_odd(shown), place[1] - place[0], len(shown), path, place[0] + 1, shown))
        if found:
            return min(found)[3:]
    return None


def example_of_callers(entry, everything):
    """For a type that is not named where it is used, what calls that which takes or returns it: options have to be
    given there."""
    spaces, _, last = entry.name.rpartition("::")
    name = re.compile(rf"(?<![\w:])(?:(?:cella|{spaces})::)*{re.escape(last)}\b")
    options = [m.group(1) for head, _ in entry.members if "(" not in head.split("=")[0]
               if (m := re.search(r"(\w+)(?:\{.*\}| =.*)?$", head))]
    callers = []
    for e in sorted(everything, key=lambda e: e.header != entry.header):
        if e.kind == "function" and any(name.search(i.head) for i in e.items):
            callers.append(uses(e))
        for head, _ in e.members:
            if name.search(head) and (m := re.search(r"(\w+)\(", without_template(head))) and m.group(1) != e.name:
                owner = e.name.split("::")[-1]
                callers.append(lambda text, f=m.group(1), owner=owner: re.compile(
                    rf"[.>]{f}\(" if owner in text else r"(?!)"))
    for caller in callers:
        def pattern(text):
            given = rf".*\{{\.({'|'.join(options)})\b" if entry.name.endswith("_options") else ""
            return re.compile(f"(?:{caller(text).pattern}){given}")
        if example := find_example(pattern, entry.header):
            return example
    return None


# What is not named where it is used, and the members of data sets and loaders that make it.
MEMBERS_OF_VIEWS = {"data::shuffled": "shuffle", "data::mapped": "map", "data::converted": "map_to",
                    "data::repeated": "repeat", "data::sliced": "take", "data::loader": "batch",
                    "data::prefetching_loader": "prefetch", "data::batch": "epoch"}


def dedent(lines):
    indent = min(len(l) - len(l.lstrip()) for l in lines if l.strip())
    return "\n".join(l[indent:] for l in lines)


@functools.cache
def files_of(patterns):
    """Files with their lines and their text."""
    files = []
    for path in sorted({p for pattern in patterns.split() for p in ROOT.glob(pattern)}):
        text = path.read_text()
        files.append((str(path.relative_to(ROOT)), text.splitlines(), text))
    return files


# ---- writing


def summary(doc):
    """The first sentence."""
    text = blocks(doc)[0][1].rstrip(":")
    m = re.match(r"(.+?[.!?])(?= +[A-Z`({]|$)", text)
    return m.group(1) if m else text


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
           "Made from the docstrings and the files that use the names by `docs/reference.py`.", "",
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
main > div { display: flex; flex-direction: column; }
input { width: 100%; box-sizing: border-box; font: inherit; padding: .4rem .6rem; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
nav h2 { font-size: .85rem; margin: 1rem 0 .2rem; }
nav a { display: block; font: 13px/1.6 ui-monospace, monospace; overflow-wrap: anywhere; }
section { min-width: 0; border-top: 1px solid var(--line); padding: .8rem 0; scroll-margin-top: 1rem; }
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
<a href="$ROOT/docs/operations.md">a table of their own</a>. Names stand in the namespace <code>cella</code>.</p>
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


def web_page(pages, folder):
    """All names as one file of HTML that lies in `folder`."""
    root = os.path.relpath(ROOT, folder)
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
            main.append(f'<p class="where">Example, from <a href="{root}/{path}">{path}</a>, line {line}:</p>'
                        f"{pre(text)}</section>")
        nav.append("</div>")
        main.append("</div>")
    return PAGE.replace("$ROOT", root).replace("$NAV", "\n".join(nav)).replace("$MAIN", "\n".join(main))


def read_pages():
    pages, lacking = {}, []
    known = {h for _, _, headers in PAGES.values() for h in headers.split()}
    rooms = {h.split("/")[0] for h in known}
    for path in sorted(p for room in rooms for p in (INCLUDE / "cella" / room).glob("*.hpp")):
        if path.stem.endswith("_body"):
            continue
        if f"{path.parent.name}/{path.stem}" not in known | INNER_HEADERS:
            fail(f"{path.relative_to(ROOT)} is on no page; add it to PAGES, or to INNER_HEADERS")
    for key, (title, sentence, headers) in PAGES.items():
        entries = [e for h in headers.split() for e in entries_of(h)]
        pages[key] = (title, sentence, entries)
    everything = [e for _, _, entries in pages.values() for e in entries]
    for e in everything:
        e.example = find_example(uses(e), e.header) or example_of_callers(e, everything)
        if not e.example:
            lacking.append(f"{e.header}: {e.name}")
    if lacking:
        fail("no compiled file uses these; add one to tests/docs/reference.cpp:\n  " + "\n  ".join(lacking))
    return pages


def contents(pages):
    names = sum(len(entries) for _, _, entries in pages.values())
    out = ["# Reference", "", f"{names} public names: what they are, where they stand, and a line that uses them. "
           "Names stand in the namespace `cella`.", "",
           "One page with all of them and a search, for a browser, without a server:", "",
           "```sh", "python3 docs/reference.py --page reference.html", "```", "",
           "| page | | names |", "| --- | --- | ---: |"]
    for key, (title, sentence, entries) in pages.items():
        out.append(f"| [{title}]({key}.md) | {sentence} | {len(entries)} |")
    out.append("| [Operations](../operations.md) | What nets compute: convolutions, sums, activations ... | |")
    return "\n".join(out) + "\n"


def current(name, text):
    """Whether a page is what would be written, but for the lines on which examples stand."""
    page = FOLDER / name
    without_lines = functools.partial(re.sub, r"#L\d+\)", ")")
    return page.exists() and without_lines(page.read_text()) == without_lines(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if docs/reference is not up to date")
    parser.add_argument("--page", metavar="FILE", type=pathlib.Path, help="write one page of HTML instead")
    asked = parser.parse_args()
    pages = read_pages()
    written = {f"{key}.md": markdown(*page) for key, page in pages.items()} | {"README.md": contents(pages)}
    if asked.page:
        asked.page.write_text(web_page(pages, asked.page.resolve().parent))
    elif asked.check:
        old = [name for name, text in written.items() if not current(name, text)]
        old += [p.name for p in FOLDER.glob("*") if p.name not in written]
        if old:
            fail(f"docs/reference is not what the headers say ({', '.join(old)}); run python3 docs/reference.py")
    else:
        FOLDER.mkdir(exist_ok=True)
        for name, text in written.items():
            (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
