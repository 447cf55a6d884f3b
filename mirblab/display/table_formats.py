"""A table of results as LaTeX, Markdown, CSV, and HTML that can be sorted and filtered."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from mirblab.core import atomic_files
from mirblab.core.errors import check_known
from mirblab.display.escape import (
    Cell,
    escape_latex,
    escape_markdown,
    format_interval,
    format_value,
    html_cell,
    is_long,
    latex_cell,
    markdown_cell,
    maths_html,
    plain_html,
)
from mirblab.display.text import MATH_FONTS, escape_html, excerpts, template
from mirblab.evaluation.imported import mark_imported
from mirblab.evaluation.significance import P_COLUMNS

if TYPE_CHECKING:
    from IPython.display import HTML


STYLE = f"{template('table.css')}\n.mirblab-table {MATH_FONTS}"

SCRIPT = template("table.js")

MOST_ROWS = 500  # in a page
Row = tuple[str, list[Cell]]  # a name and its cells
# The widest table of a page, in characters: 7 inches of digits of 8 points, or a notebook beside the file browser.
_PAGE = 110
_COLUMN = 42  # the widest one of a column of a page of two, and of letters of 10 points
_FITTED = r"\resizebox{\ifdim\width>\textwidth\textwidth\else\width\fi}{!}{"
_GAP = 2  # characters of space between two columns
_SHORTEST = 8  # characters in a line of a long text
_LINES = 48  # of long texts on a page
_MOST_HEADS = 8  # above, they are rotated
_FEW = 10  # rows; above, a table can be filtered, and scrolls under its head
_CLASSES = "mirblab-table tex2jax_ignore mathjax_ignore"


@dataclass(repr=False)
class Table:
    """A table to be shown and saved: numbers, marks, caption and notes.

    *frame*: numbers in printed units, not rounded; its columns may have two levels (group, column). *marks* ("best",
    "second"), *signs* ("†", "§") and *beside* (text after the number) have its shape or are empty. *extra*: further
    tables of its shape that only the CSV has, such as the paper's numbers. *formats*: format specifications of columns;
    p values (`p`, `p_holm` and the like, `p (...)`) have a default one. *maths*: columns whose texts, like the caption,
    hold formulas. *others*: names of imported systems, to be marked. *labels*: what is shown for names of rows, but not
    in the CSV. *is_grid*: cells are numbers of one kind, so that rows and columns may be exchanged to fit a page.

    >>> Table(pd.DataFrame({"nDCG@10": [0.5]}, index=["bm25"]), caption="Means.").caption
    'Means.'
    """

    frame: pd.DataFrame
    caption: str = ""
    notes: list[str] = field(default_factory=list)
    digits: int = 2
    marks: pd.DataFrame = field(default_factory=pd.DataFrame)
    signs: pd.DataFrame = field(default_factory=pd.DataFrame)
    beside: pd.DataFrame = field(default_factory=pd.DataFrame)
    extra: dict[str, pd.DataFrame] = field(default_factory=dict)
    formats: Mapping[str, str] = field(default_factory=dict)
    maths: frozenset[str] = frozenset()
    others: frozenset[str] = frozenset()
    labels: Mapping[str, str] = field(default_factory=dict)
    is_grid: bool = False

    def add_intervals(self, low: pd.DataFrame, high: pd.DataFrame, *, printed: bool = True) -> None:
        """Write [low, high] beside each number in its format, nothing where there is none, and both into the CSV.

        *low* and *high* have the shape of *frame*; where they are not *printed*, only the CSV has them.
        """
        self.extra |= {"low": low, "high": high}
        formats = [self.formats.get(column_name(name), f".{self.digits}f") for name in self.frame.columns]
        texts = [
            [format_interval(a, b, how) if a == a else "" for a, b, how in zip(*ends, formats, strict=True)]
            for ends in zip(low.to_numpy(), high.to_numpy(), strict=True)
        ]
        if printed:
            self.beside = pd.DataFrame(texts, index=self.frame.index, columns=self.frame.columns)

    def laid_out(self) -> Table:
        """Return the table as it is shown: a grid wider than a page has its rows as columns, if that is narrower."""
        if not self.is_grid or self.width() <= _PAGE:
            return self
        turned = {name: getattr(self, name).T for name in ("frame", "marks", "signs", "beside")}
        other = replace(self, **turned, is_grid=False)
        return other if other.width() < self.width() else self

    def width(self) -> int:
        """Return the width in characters, with the space between columns."""
        return sum(_column_widths(self))

    def rows(self) -> Iterator[tuple[str, list[Cell]]]:
        """Yield each row's name and its formatted cells."""
        flags = [part.to_numpy() if part.size else None for part in (self.marks, self.signs, self.beside)]
        names = [column_name(name) for name in self.frame.columns]
        kinds = [(self.formats.get(name, "p" * _is_p_value(name)), name in self.maths) for name in names]
        columns = [self.frame.iloc[:, column].tolist() for column in range(self.frame.shape[1])]
        for row, name in enumerate(self.frame.index):
            cells = []
            for column, (how, is_maths) in enumerate(kinds):
                value = columns[column][row]
                if isinstance(value, str) and value in self.others:
                    value = mark_imported(value, self.others)
                mark, sign, beside = ("" if flag is None else str(flag[row, column]) for flag in flags)
                text = format_value(value, self.digits, how)
                cells.append(Cell(text, mark, sign, beside, is_maths and isinstance(value, str)))
            yield ": ".join(part for part in self._shown(name) if part), cells

    def header(self) -> tuple[list[tuple[str, int]], list[str]]:
        """Return the groups above the columns with their widths (empty for one level), and the column names."""
        names = [self._shown(name)[-1] for name in self.frame.columns]
        if self.frame.columns.nlevels == 1:
            return [], names
        groups = groupby(self._shown(name)[0] for name in self.frame.columns)
        return [(group, len(list(members))) for group, members in groups], names

    def _shown(self, name: object) -> list[str]:
        """Return the parts of a row's or a column's name, with its label, or marked as imported."""
        parts = map(str, name if isinstance(name, tuple) else (name,))
        marked = [(part, mark_imported(part, self.others)) for part in parts]
        return [self.labels.get(part, part) if shown == part else shown for part, shown in marked]

    def corner(self) -> str:
        """Return the head of the rows' names, "" where they have none."""
        return ": ".join(str(name) for name in self.frame.index.names if name)

    def is_number(self) -> list[bool]:
        """Return for each column whether it is numeric, and so aligned to the right."""
        types = pd.api.types
        return [types.is_numeric_dtype(kind) and not types.is_bool_dtype(kind) for kind in self.frame.dtypes]

    def to_latex(self, label: str = "", provenance: Mapping[str, Any] | None = None) -> str:
        """Return a `table` environment below comments on packages and *provenance*; nine or more heads are rotated.

        A wide table is a `table*`, which spans both columns of a page, in smaller letters. What is wider than a page
        has its rows as columns, or continues below, if its cells are of one kind (`is_grid`); otherwise the lines of
        its long texts are broken, and texts that would fill the page are cut. What is still too wide is scaled.
        """
        shown = self.laid_out()
        blocks = _page_wide(shown) if self.is_grid else [shown]
        is_wide = shown.width() > _COLUMN
        needs_array = any(any(_paragraphs(block)) for block in blocks)
        made_from = dict(provenance or {}).items()
        packages = f"amsmath,amssymb{',array' * needs_array},booktabs{',graphicx' * is_wide}"
        lines = [rf"% needs \usepackage{{{packages}}}"]
        lines += [f"% {key}: {json.dumps(value, sort_keys=True, default=str)}" for key, value in made_from]
        kind = "table*" if is_wide else "table"
        lines += [rf"\begin{{{kind}}}", r"\centering"]
        lines += [rf"\caption{{{escape_latex(self.caption, bool(self.maths))}}}"] if self.caption else []
        lines += [rf"\label{{{label}}}"] if label else []
        lines += [r"\footnotesize\setlength{\tabcolsep}{4pt}"] if is_wide else []
        for number, block in enumerate(blocks):
            lines += [r"\par\medskip"] * (number > 0)
            lines += [_FITTED + "%", *_tabular(block), "}"] if is_wide else _tabular(block)
        lines += [rf"\par\footnotesize {escape_latex(note)}" for note in self.notes]
        return "\n".join([*lines, rf"\end{{{kind}}}"]) + "\n"

    def to_markdown(self) -> str:
        """Return a GitHub-flavoured table with its caption above and its notes below; a group precedes a colon."""
        shown = self.laid_out()
        heads = [": ".join(part for part in shown._shown(name) if part) for name in shown.frame.columns]
        rules = ["---", *("---:" if number else "---" for number in shown.is_number())]
        lines = [list(map(escape_markdown, (shown.corner(), *heads))), rules]
        lines += [[escape_markdown(name), *map(markdown_cell, cells)] for name, cells in shown.rows()]
        body = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        parts = [escape_markdown(self.caption, bool(self.maths)), body, *map(escape_markdown, self.notes)]
        return "\n\n".join(part for part in parts if part) + "\n"

    def to_html(self) -> str:
        """Return an HTML table with caption and notes, without style and script; formulas are MathML."""
        notes = "".join(f"<p><small>{plain_html(note)}</small></p>\n" for note in self.notes)
        return table_element(self.laid_out()) + notes

    def _repr_html_(self) -> str:
        return interactive_html(self.laid_out(), rest="are in its CSV, which to_csv() gives whole")

    __repr__ = to_markdown

    def to_csv(self) -> str:
        """Return the numbers as CSV without marks and display rounding; *extra* tables follow, named after a colon."""
        names = flatten_columns(self.frame.columns)
        parts = [self.frame.set_axis(names, axis=1)]
        for what, part in self.extra.items():
            parts.append(part.set_axis([f"{name}: {what}" for name in names], axis=1).dropna(axis=1, how="all"))
        labels = [str(name or "name") for name in self.frame.index.names]
        return pd.concat(parts, axis=1).round(10).to_csv(index_label=labels, lineterminator="\n")

    def save(self, folder: str | Path, name: str, provenance: Mapping[str, Any]) -> list[Path]:
        """Write `<name>.tex`, `.md`, `.csv` and `.json` (caption, notes and provenance); return their paths.

        The LaTeX has the label tab:<notebook>:<name>, so that a paper may have tables of several notebooks.

        Equal content gives equal bytes; no file is written partly, and none to a folder that cannot be written.
        """
        record = {"name": name, "caption": self.caption, "notes": self.notes, "provenance": dict(provenance)}
        named = ":".join(["tab", *filter(None, [provenance.get("notebook")]), name])
        label = re.sub(r"[^\w:-]+", "-", named, flags=re.ASCII)
        texts = {
            "tex": self.to_latex(label, provenance),
            "md": self.to_markdown(),
            "csv": self.to_csv(),
            "json": json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False, default=str) + "\n",
        }
        written = [Path(folder) / f"{name}.{suffix}" for suffix in texts]
        for path, text in zip(written, texts.values(), strict=True):
            atomic_files.try_to_store("tables", atomic_files.write_text, path, text, full_is_error=True)
        return written


_WHERE_REST = "are in the data, which to_csv() writes whole"


def sortable_table(frame: pd.DataFrame, *, maths: Iterable[str] = (), caption: str = "") -> HTML:
    r"""Return *frame* for display: a click, or Enter, on a column's head sorts, a field filters, formulas are rendered.

    The field, for tables of more than ten rows, keeps rows with all its words, ignoring case and accents, also in the
    LaTeX of formulas. *maths* names the columns whose texts hold formulas. At most 500 rows are shown. Row names are
    hidden if they only count. Raises MirblabError for a name in *maths* that is no column.

    >>> shown = sortable_table(pd.DataFrame({"text": ["Is $x<y$?"], "price": ["$5"]}), maths=["text"]).data
    >>> "<mo>&lt;</mo>" in shown, ">$5</span>" in shown
    (True, True)
    """
    from IPython.display import HTML

    return HTML(frame_html(frame, maths=maths, caption=caption))


def frame_html(
    frame: pd.DataFrame,
    *,
    maths: Iterable[str] = (),
    caption: str = "",
    most: int = MOST_ROWS,
    rest: str = _WHERE_REST,
) -> str:
    """Return the HTML of `sortable_table` with at most *most* rows; *rest* says where the others are."""
    chosen = frozenset(maths)
    names = [column_name(name) for name in frame.columns]
    check_known("column", chosen, names)
    has_names = not isinstance(frame.index, pd.RangeIndex)
    if frame.index.nlevels > 1:
        frame, has_names = frame.reset_index(), False
    formats = {column_name(name): _number_format(frame.iloc[:, place]) for place, name in enumerate(frame.columns)}
    table = Table(frame, caption, formats=formats, maths=chosen)
    return interactive_html(table, most=most, rest=rest, has_names=has_names)


def _number_format(column: pd.Series) -> str:
    """Return a format with as many digits as the column's numbers need, "" for a column without floats.

    >>> [_number_format(pd.Series(numbers)) for numbers in ([0.5, 120.25], [1e-7], [2.0, 3.0], [0.0, 2e-5, 0.01])]
    [',.2f', '.2e', ',.0f', '.3g']
    """
    if not pd.api.types.is_float_dtype(column):
        return ""
    numbers = column[column.abs() < float("inf")].abs()
    if not len(numbers) or (numbers % 1 == 0).all():
        return ",.0f"
    largest, smallest = float(numbers.max()), float(numbers[numbers > 0].min())
    if 1e-3 <= largest < 10 and smallest < 5e-5:  # which four digits would show as 0
        return ".3g"
    return ".2e" if largest < 1e-3 else ",.4f" if largest < 10 else ",.2f"


def interactive_html(table: Table, *, most: int = MOST_ROWS, rest: str = "", has_names: bool = True) -> str:
    """Return the HTML of `sortable_table` for a *table*, complete without its script; *rest* says where the rest is."""
    n_rows = len(table.frame)
    label = escape_html(" ".join(table.caption.split())) or "table"
    scrolls = f' role="region" tabindex="0" aria-label="{label}"' if n_rows > _FEW else ""
    rows = list(islice(table.rows(), most))
    body = table_element(table, rows, has_names=has_names, has_caption=False)
    n_long = len({place for _, cells in rows for place, cell in enumerate(cells) if is_long(cell)})
    box = f"mirblab-box mirblab-long-{min(n_long, 4)}"  # columns of long texts share the width
    notes = list(table.notes)
    if n_rows > most:
        notes.insert(0, f"The first {most:,} of {n_rows:,} rows are shown; the other {n_rows - most:,} {rest}.")
    return (
        f'<figure class="{_CLASSES}"><style>\n{STYLE}</style>\n'
        + (f"<figcaption>{_caption(table)}</figcaption>\n" if table.caption.strip() else "")
        + f'<div class="{box}"{scrolls}>\n{body}</div>\n'
        + "".join(f"<p>{plain_html(note)}</p>\n" for note in notes)
        + f"<script>\n{SCRIPT}\n</script></figure>\n"
    )


def table_element(
    table: Table, rows: Sequence[Row] | None = None, *, has_names: bool = True, has_caption: bool = True
) -> str:
    """Return the `<table>` alone with *rows* (None: all of them), everything in it escaped."""
    shown = list(table.rows()) if rows is None else rows
    groups, names = table.header()
    numbers = table.is_number()
    caption = f"<caption>{_caption(table)}</caption>\n" if has_caption and table.caption.strip() else ""
    corner = _head_cell(table.corner(), False) if has_names else ""
    top = "".join(f'<th scope="colgroup" colspan="{width}">{plain_html(group)}</th>' for group, width in groups)
    above = f"<tr>{'<td></td>' if has_names else ''}{top}</tr>\n" if groups else ""
    heads = "".join(map(_head_cell, names, numbers))
    columns = [table.frame.iloc[: len(shown), column].tolist() for column in range(len(names))]
    lines = []
    for row, (name, cells) in enumerate(shown):
        values = (html_cell(cell, sort_value(columns[place][row]), numbers[place]) for place, cell in enumerate(cells))
        first = f'<th scope="row">{plain_html(name)}</th>' if has_names else ""
        lines.append(f"<tr>{first}{''.join(values)}</tr>\n")
    return (
        f'<table class="dataframe">\n{caption}<thead>\n{above}<tr>{corner}{heads}</tr>\n</thead>\n'
        f"<tbody>\n{''.join(lines)}</tbody>\n</table>\n"
    )


def _head_cell(name: str, is_number: bool) -> str:
    kind = ' class="mirblab-number"' if is_number else ""
    return f'<th scope="col"{kind}>{plain_html(name)}</th>'


def _caption(table: Table) -> str:
    return maths_html(table.caption) if table.maths else plain_html(table.caption)


def sort_value(value: Any) -> str:
    """Return a number with all digits as its sort key; "" for anything else.

    >>> sort_value(0.1), sort_value(True), sort_value(float("nan")), sort_value("7")
    ('0.1', '', '', '')
    """
    if isinstance(value, bool) or not isinstance(value, Real) or value != value:
        return ""
    return repr(float(value)).replace("inf", "Infinity")


def flatten_columns(columns: pd.Index) -> list[str]:
    """Return column names as text; two levels are joined by a colon."""
    if columns.nlevels == 1:
        return [str(name) for name in columns]
    return [": ".join(part for part in map(str, name) if part) for name in columns]


def _is_p_value(name: str) -> bool:
    return name in P_COLUMNS or name.startswith("p (")


def column_name(name: object) -> str:
    """Return a column's name without the group above it."""
    return str(name[-1] if isinstance(name, tuple) else name)


def _column_widths(table: Table) -> list[int]:
    """Return the width of the rows' names and of each column, in characters, with the space between columns."""
    rows = list(table.rows())
    groups, names = table.header()
    heads = [0 if len(names) > _MOST_HEADS else len(name) for name in names]
    cells = [
        [len(cell.text) + len(cell.sign) + len(cell.beside) + bool(cell.beside) for cell in row] for _, row in rows
    ]
    widths = [max(column) for column in zip(heads, *cells, strict=True)]
    names_width = max([len(table.corner()), *(len(name) for name, _ in rows)])
    return [names_width, *(_GAP + width for width in widths)]


def _paragraphs(table: Table) -> list[int]:
    """Return the characters in a line of each text column that is too long for a page, 0 for the other columns."""
    widths, lines = _column_widths(table), [0] * (1 + table.frame.shape[1])
    texts = [0, *(1 + place for place, number in enumerate(table.is_number()) if not number)]
    room = _PAGE - sum(widths) + sum(widths[place] for place in texts)
    for done, place in enumerate(sorted(texts, key=widths.__getitem__)):  # what short ones leave is for the others
        share = max(room // (len(texts) - done), _SHORTEST)
        if widths[place] > share:
            lines[place] = share - _GAP
        room -= min(widths[place], share)
    return lines


def _page_wide(table: Table) -> list[Table]:
    """Return the table in parts that fit a page, each with some of its columns."""
    first, *widths = _column_widths(table)
    starts, used = [0], first
    for column, width in enumerate(widths):
        if used + width > _PAGE and column > starts[-1]:
            starts.append(column)
            used = first
        used += width
    ends = [*starts[1:], len(widths)]
    names = ("frame", "marks", "signs", "beside")
    return (
        [
            replace(table, **{name: part.iloc[:, start:end] for name in names if (part := getattr(table, name)).size})
            for start, end in zip(starts, ends, strict=True)
        ]
        if len(starts) > 1
        else [table]
    )


def _tabular(table: Table) -> list[str]:
    """Return the lines of a `tabular`; rows with a group stand below its name."""
    groups, names = table.header()
    heads = [escape_latex(name) for name in names]
    if len(names) > _MOST_HEADS:
        heads = [rf"\rotatebox{{90}}{{{head}}}" for head in heads]
    kinds = ["l", *("r" if number else "l" for number in table.is_number())]
    paragraphs = _paragraphs(table)
    columns = "".join(
        rf">{{\raggedright\arraybackslash}}p{{{width / _PAGE:.3f}\textwidth}}" if width else kind
        for kind, width in zip(kinds, paragraphs, strict=True)
    )
    n_lines = max(_LINES // max(len(table.frame), 1), 2)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", *(_latex_groups(groups) if groups else [])]
    lines += [" & ".join([escape_latex(table.corner()), *heads]) + r" \\", r"\midrule"]
    group, is_grouped = "", table.frame.index.nlevels > 1
    for place, (name, (shown, cells)) in enumerate(zip(table.frame.index, table.rows(), strict=True)):
        if is_grouped:
            above, shown = table._shown(name)
            if above != group:
                lines += [r"\addlinespace"] * (place > 0)
                lines += [rf"\multicolumn{{{len(names) + 1}}}{{l}}{{\textit{{{escape_latex(above)}}}}} \\"] * (
                    above != ""
                )
            group = above
        guard = "{}" if shown[:1] in ("[", "*") else ""  # which the rule or the line before would take
        indent = r"\quad " * bool(group)
        cut = [_cut_cell(cell, width * n_lines) for cell, width in zip(cells, paragraphs[1:], strict=True)]
        lines += [" & ".join([guard + indent + escape_latex(shown), *map(latex_cell, cut)]) + r" \\"]
    return [*lines, r"\bottomrule", r"\end{tabular}"]


def _cut_cell(cell: Cell, longest: int) -> Cell:
    """Return a cell with at most *longest* characters of its text, 0 for all; no formula is cut."""
    if not longest or len(cell.text) <= longest:
        return cell
    return cell._replace(text=excerpts([cell.text], "", longest)[0] if cell.is_maths else f"{cell.text[:longest]}…")


def _latex_groups(groups: list[tuple[str, int]]) -> list[str]:
    spans, rules, column = [""], "", 2
    for group, width in groups:
        spans.append(rf"\multicolumn{{{width}}}{{c}}{{{escape_latex(group)}}}")
        rules += rf"\cmidrule(lr){{{column}-{column + width - 1}}}" if group else ""
        column += width
    return [" & ".join(spans) + r" \\", rules]
