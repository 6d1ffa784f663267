"""Writes docs/errors.md from tests/errors, or with --check says whether it is up to date.

The sentence of a fault stands in the first lines of tests/errors/<fault>.cpp, where the tests hold
the compilers to it; title, reason, wrong and mended code stand in cells/<fault>.hpp, or in
language/<fault>.hpp if the compiler alone can say it (no trace does at run time), or in
operations/<fault>.hpp if it is not the model that is wrong. Whole programs, in folders of their own,
begin with the sentence and a title.
"""

import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "errors.md"

INTRODUCTION = """# Faults of models, and how to mend them

This file is made from `tests/errors` by `python3 docs/errors.py`; a test checks that it is up to
date.

A model is traced by the compiler. If something in it does not fit, compilation ends with **one**
error that tells what, in a sentence: the file and line where the operation was written, the
operation, its operands by name with their actual shapes, and where it helps a remedy.

The error is in your line: where the model or the executable is made, where `compile` or `fit` is
called, or where a plan is read.

- g++ prints the sentence whole in the line of the error:
  `net.cpp:31:27: error: use of deleted function 'cella::model<...>::model(const
  cella::run_options&) [with Why = cella::wrong_model<cella::words<105>{"..."}>; ...]'`.
- clang says `net.cpp:31:14: error: call to deleted constructor of 'Classifier'`, and the sentence in
  the note behind it, in pieces that end where a word ends:
  `note: 'model<cella::wrong_model<words<27>{"..."}, words<25>{"..."}>>' has been explicitly marked
  deleted here`.
- Where a plan or a graph is read both say
  `error: no member named 'arena_bytes' in 'cella::wrong_model<words<27>{"..."}, ...>'`, or, if the
  compiler could not run the cell, `... in 'cella::detail::the_compiler_could_not_run<Net>'`: where an
  executable is made it says where it stops.
- At run time (eager mode, `trace`, a batch size that was not compiled) the same sentence is thrown
  as `cella::model_error`.

Operands are named as follows: `fc2.weight` is a parameter, by its path from the model; `x`, `y`,
`z` are the model's arguments; `relu result` is what the last relu before it made, and
`add result of conv1` was made in the cell `conv1`. The first fault is reported; what follows from
it is not.
"""

LANGUAGE = """# Faults in the C++ of a cell

What a cell is and what is written with a var is checked by its types before it is traced. The sentence
begins with the name of the cell, and the error is in the line that makes the model, or compiles the
cell; what is no operation on a var is marked where it is written.
"""

OPERATIONS = """# Faults of operations

An operation is one struct ([Adding an operation](adding_an_operation.md)). If it lacks what its kind
asks for, the compiler says so in the line that applies it by `emit`, naming the struct and the
operation: `error: use of deleted function ... cella::emit(...) [with Op = own::cube_op; ... Why =
cella::wrong_operation<own::cube_op, cella::words<157>{"cube: an elementwise operation needs partial
..."}>]`; clang has the sentence in the note behind the error. A second error says in the line that asked
for a program that there is none.
"""

PROGRAMS = """# Whole programs

What else is refused, in programs as they are written, and with whose words: those of the library, or
those of the compiler that stopped in the middle of a cell. Then g++ marks the place in the cell or the
line that asked for the program, and clang that line, with the place in the cell in the first note.
What is no C++ (a misspelled name) is reported where it stands, and a second error says in the line that
asked for the program that there is none. Of what a constexpr function may not do at all (a static
variable, a call of a function that is not constexpr) clang says nothing more; g++'s second error is in
the library, where the call operator is called. What the standard library refuses while it runs
(`std::array::at`, `std::optional::value`) g++ reports in the header of that, and says in the line before
in which line of the cell it was called.
"""

GROUPS = {
    "own": "Operations of one's own, and how they are applied",
    "structure": "What a cell is",
    "body": "What stands in a call operator",
    "options": "Options of layers and operations",
    "training": "What makes a model, and what it is given",
    "calls": "What compile and its functions are given",
    "parallel": "How a program is divided among ranks",
}


def between(text, begin, end):
    return text.split(begin, 1)[1].split(end, 1)[0].strip("\n")


def section(test):
    sentence = re.match(r"(// expect: .*\n)+", test.read_text()).group(0)
    sentence = " ".join(line[len("// expect: "):] for line in sentence.splitlines())
    header = next(test.parent.glob(f"*/{test.stem}.hpp")).read_text()

    comment = between("\n" + header, "\n", "#pragma once")
    title, reason = comment.split("\n//\n", 1)
    title = title.removeprefix("// ").rstrip(".")
    reason = " ".join(line.removeprefix("// ") for line in reason.splitlines())

    lines = header.splitlines()
    if place := re.match(r"\S+\.hpp:(\d+): ", sentence):
        lines[int(place.group(1)) - 1] += f"  // line {place.group(1)}"
    marked = "\n".join(lines)
    wrong = between(marked, "using namespace cella;\n", "// Mended:\n")
    mended = between(marked, "// Mended:\n", "/// The program")
    return title, f"""## {title}

```cpp
{wrong}
```

```text
{textwrap.fill(sentence, 96, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)}
```

{textwrap.fill(reason, 100, break_on_hyphens=False)}

```cpp
{mended}
```
"""


def sections(folder):
    headers = (ROOT / "tests" / "errors" / folder).glob("*.hpp")
    return [body for _, body in sorted(section(h.parent.parent / f"{h.stem}.cpp") for h in headers)]


def said(program, marker):
    """The sentence that lines with this marker hold, its lines joined."""
    return " ".join(re.findall(rf"^// {marker}: (.*)$", program, re.MULTILINE))


def shown(program, group):
    """What is wrong in it: where its use is not, that is left out."""
    code = program.split("using namespace cella;\n", 1)[1].strip("\n")
    net, use = re.match(r"(.*?)((?:using Program|using Classifier|static_assert|int main).*)", code, re.DOTALL).groups()
    if group in ("training", "calls", "parallel") and "nn::dense<10, 10> fc;\n\n  constexpr var operator()(var x) const { return fc(x); }" in net:
        return use
    return net.strip("\n") or use


def program_section(path):
    program = path.read_text()
    sentences = [said(program, "expect"), *(
        f"{name}: {words}" for name in ("gcc", "clang") if (words := said(program, f"expect-{name}")))]
    for place in set(re.findall(rf"{path.stem}\.cpp:(\d+):", program)):
        lines = program.splitlines()
        lines[int(place) - 1] += f"  // line {place}"
        program = "\n".join(lines)
    title = re.search(r"^// (?!expect)(.*)\.$", program, re.MULTILINE).group(1)
    text = "\n".join(
        textwrap.fill(s, 96, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
        for s in sentences if s)
    return f"### {title}\n\n```cpp\n{shown(program, path.parent.name)}\n```\n\n```text\n{text}\n```\n"


def programs():
    for group, title in GROUPS.items():
        yield f"## {title}\n"
        yield from sorted(program_section(p) for p in (ROOT / "tests" / "errors" / group).glob("*.cpp"))


def document():
    return "\n".join([INTRODUCTION, *sections("cells"), LANGUAGE, *sections("language"), OPERATIONS, *sections("operations"),
                      PROGRAMS, *programs()])


def main():
    text = document()
    if "--check" not in sys.argv[1:]:
        DOCUMENT.write_text(text)
    elif not DOCUMENT.exists() or DOCUMENT.read_text() != text:
        sys.exit("docs/errors.md does not agree with tests/errors; run python3 docs/errors.py")


if __name__ == "__main__":
    main()
