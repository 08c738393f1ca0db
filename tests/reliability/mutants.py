"""Mutants of the code, built in together, each behind a switch in the environment."""

from dataclasses import dataclass, field

import tree_sitter
import tree_sitter_rust

# The module that the switches call. A process notes each switch that it reaches, if it is asked to.
SWITCH = """\
//! Switches of mutants.

use std::env;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

static CHOSEN: LazyLock<usize> = LazyLock::new(|| env::var("MUTANT").map_or(usize::MAX, |number| number.parse().unwrap()));
static REACHED: [AtomicBool; COUNT] = [const { AtomicBool::new(false) }; COUNT];
static NOTES: LazyLock<Option<File>> = LazyLock::new(|| {
    env::var_os("MUTANTS_REACHED").map(|path| OpenOptions::new().create(true).append(true).open(path).unwrap())
});

pub(crate) fn is(number: usize) -> bool {
    if *CHOSEN == number {
        return true;
    }
    if let Some(mut notes) = NOTES.as_ref()
        && !REACHED[number].swap(true, Ordering::Relaxed)
    {
        notes.write_all(format!("{number}\\n").as_bytes()).unwrap();
    }
    false
}
"""

OPERATIONS = ("binary_expression", "compound_assignment_expr")
PARSER = tree_sitter.Parser(tree_sitter.Language(tree_sitter_rust.language()))


@dataclass
class Place:
    """A part of a file with the mutants that change it, and the places within it."""

    start: int
    end: int
    genre: str
    node: object = None
    # The number and the new text of each.
    mutants: list = field(default_factory=list)
    inner: list = field(default_factory=list)


@dataclass
class Switched:
    """A file with switches: its text, the mutants that have none, and the part of the text of each that has one."""

    text: bytes
    without: list
    regions: list


def switched(text, mutants):
    """The file with a switch for each mutant (by number) that can have one."""
    tree = PARSER.parse(text)
    lines = text.splitlines(keepends=True)
    places, without = {}, []
    for number, mutant in mutants.items():
        start, end = (offset(lines, mutant["span"][at]) for at in ("start", "end"))
        place = found(tree.root_node, text, mutant["genre"], start, end)
        if place is None:
            without.append(number)
            continue
        place = places.setdefault((place.start, place.end, place.genre), place)
        place.mutants.append((number, mutant["replacement"]))
    for place in list(places.values()):
        if const := constant(tree.root_node, place.start):
            places.setdefault((const.start, const.end, const.genre), const)
    parts = written(text, 0, len(text), nested(places.values()))
    return Switched(b"".join(part for part, _ in parts), without, regions(parts))


def offset(lines, at):
    """Columns are of characters."""
    before = sum(map(len, lines[: at["line"] - 1]))
    return before + len(lines[at["line"] - 1].decode()[: at["column"] - 1].encode())


def found(root, text, genre, start, end):
    """The part that a mutant changes, if a switch can choose it."""
    node = root.descendant_for_byte_range(start, end)
    if genre == "FnValue":
        return Place(start, end, genre)
    if genre == "MatchArmGuard":
        return Place(start, end, genre)
    if genre == "BinaryOperator":
        node = above(node, OPERATIONS)
        operator = node and node.child_by_field_name("operator")
        is_it = operator and (operator.start_byte, operator.end_byte) == (start, end)
        # A test of a pattern has no other form.
        return Place(node.start_byte, node.end_byte, genre, node) if is_it and b"let " not in node.text else None
    if genre == "UnaryOperator":
        node = above(node, ("unary_expression",))
        is_it = node and node.start_byte == start
        return Place(node.start_byte, node.end_byte, genre, node) if is_it else None
    if genre == "MatchArm":
        pattern = above(root.descendant_for_byte_range(start, end), ("match_arm",)).child_by_field_name("pattern")
        if pattern.child_by_field_name("condition") is not None:
            return None
        return Place(pattern.end_byte, pattern.end_byte, genre)
    return None


def constant(root, start):
    """The word that makes the function of a place constant, which a switch is not."""
    function = above(root.descendant_for_byte_range(start, start), ("function_item",))
    modifiers = function and next((node for node in function.children if node.type == "function_modifiers"), None)
    word = modifiers and next((node for node in modifiers.children if node.type == "const"), None)
    return Place(word.start_byte, word.end_byte, "const") if word else None


def above(node, kinds):
    while node is not None and node.type not in kinds:
        node = node.parent
    return node


def nested(places):
    """The outermost places, each with those within."""
    outermost, around = [], []
    for place in sorted(places, key=lambda place: (place.start, -place.end)):
        while around and place.start >= around[-1].end:
            around.pop()
        (around[-1].inner if around else outermost).append(place)
        if place.end > place.start:
            around.append(place)
    return outermost


def written(text, start, end, places):
    """The parts of the text from start to end, each with the mutant that it is the switch of, if any."""
    parts = []
    for place in places:
        if not start <= place.start or place.end > end:
            continue
        parts.append((text[start : place.start], None))
        parts += of_place(text, place)
        start = place.end
    return [*parts, (text[start:end], None)]


def of_place(text, place):
    def within(start, end):
        return written(text, start, end, place.inner)

    if place.genre == "const":
        return []
    whole = within(place.start, place.end)
    if place.genre == "FnValue":
        return [
            *((f"if crate::mutants::is({number}) {{ return {new}; }} ".encode(), number) for number, new in place.mutants), *whole
        ]
    if place.genre == "MatchArm":
        return [(f" if !crate::mutants::is({number})".encode(), number) for number, _ in place.mutants]
    parts = [(b"(", None)]
    for number, new in place.mutants:
        parts += [(f"if crate::mutants::is({number}) {{ ".encode(), number), *of_mutant(place, number, new, within), (b" } else ", number)]
    return [*parts, (b"{ ", None), *whole, (b" })", None)]


def of_mutant(place, number, new, within):
    if place.genre == "MatchArmGuard":
        return [(new.encode(), number)]
    if place.genre == "UnaryOperator":
        operand = place.node.named_children[-1]
        return within(operand.start_byte, operand.end_byte)
    left, right = place.node.child_by_field_name("left"), place.node.child_by_field_name("right")
    parts = within(left.start_byte, left.end_byte) + [(f" {new} ".encode(), number)] + within(right.start_byte, right.end_byte)
    return [(part, number if whose is None else whose) for part, whose in parts]


def regions(parts):
    """Where the parts of each mutant are."""
    at, each = 0, []
    for part, number in parts:
        if number is not None:
            each.append((at, at + len(part), number))
        at += len(part)
    return each
