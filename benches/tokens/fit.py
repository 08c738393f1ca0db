#!/usr/bin/env python3
"""Fits the weights of the classes of characters to the counts of real tokenizers, rather high than low.

    fit.py FOLDER

FOLDER has texts.ndjson, counts.ndjson (by count.mjs) and classes.ndjson (by the benchmark `tokens`). Writes
crates/prompt/src/tokens/weights.rs and the table of docs/reference/tokens.md, and prints how near the estimates are.

The fit is a linear program: the weights with the least sum of errors, where a text that is estimated below its count or
more than a quarter above it counts many times. Each class has a minimum weight, so that no text is free.
"""

import base64
import json
import math
import os
import random
import sys
from collections import Counter, defaultdict

import numpy
from scipy.optimize import linprog
from scipy.sparse import csr_matrix, hstack, identity, vstack

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
WEIGHTS = f"{REPO}/crates/prompt/src/tokens/weights.rs"
TABLE = f"{REPO}/docs/reference/tokens.md"
FAMILIES = ["openai", "anthropic", "gemini", "other"]
MIDDLE, LEAST, MOST = 1.12, 1.0, 1.25  # of an estimate, as a multiple of the count
BELOW, ABOVE = 20, 10  # times an ordinary error
NOISE = 0.1  # of the share of other kinds

# The least weight of a class in tokens, by the beginning of its name.
FLOORS = {
    "word of": 0.15, "word in capitals": 0.3, "random run": 0.3, "number of": 0.2, "run of signs": 0.3, "sign beyond": 0.1,
    "run of spaces": 0.3, "space beyond": 0.005, "line feed": 0.3, "run of one sign": 0.5, "sign of it": 0.03, "escape of": 3.0,
    "LatinSigns": 0.5, "Latin1": 0.3, "LatinA": 0.3, "LatinB": 0.5, "LatinMore": 0.5, "Marks": 0.5, "Greek": 0.3, "Cyrillic": 0.2,
    "CyrillicRest": 0.3, "CyrillicMore": 0.8, "Armenian": 0.5, "Hebrew": 0.4, "Arabic": 0.3, "ArabicRest": 0.5, "Georgian": 0.3,
    "Gurmukhi": 0.5, "Gujarati": 0.5, "Odia": 0.6, "Kannada": 0.5, "Malayalam": 0.5, "Sinhala": 0.5, "Lao": 0.6, "Burmese": 0.5,
    "Khmer": 0.5, "Ethiopic": 1.0, "Punctuation": 0.5, "Symbols": 0.5, "Boxes": 0.15, "ChineseSigns": 0.5, "Emoji": 0.5,
    "Surrogate": 1.0, "TwoBytes": 1.2, "ThreeBytes": 1.5, "FourBytes": 2.0,
}  # fmt: skip

# The most weight: a token is at least a byte, Anthropic's count as a fifth more, and an estimate may be a quarter too high.
CEILING = 6.0
CEILINGS = {"escape of": 7.5, "run of": 2.5, "run of signs": CEILING, "run of spaces": CEILING, "run of one sign": CEILING}


def lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def bound(table, name, other):
    """What the table has for the longest beginning of a name. The name of a script is no beginning."""
    begins = [start for start in table if name == start or (start.islower() and name.startswith(start))]
    return table[max(begins, key=len)] if begins else other


def fitted(classes, shares, least_and_most):
    """The weights; `classes` are divided by the counts, so that a perfect estimate is 1."""
    count, width = classes.shape
    one, none = identity(count), csr_matrix((count, count))
    errors = hstack([csr_matrix(classes), -one, one, none, none])
    bounds = vstack([hstack([csr_matrix(-classes), none, none, -one, none]), hstack([csr_matrix(classes), none, none, none, -one])])
    price = numpy.concatenate([numpy.full(width, 1e-6), shares / 2, shares / 2, shares * BELOW, shares * ABOVE])
    limits = numpy.concatenate([numpy.full(count, -LEAST), numpy.full(count, MOST)])
    ranges = least_and_most + [(0, None)] * (4 * count)
    found = linprog(price, A_ub=bounds.tocsr(), b_ub=limits, A_eq=errors.tocsr(), b_eq=numpy.full(count, MIDDLE), bounds=ranges, method="highs")
    return found.x[:width]


def report(family, kinds, ratios):
    quantiles = numpy.quantile(ratios, [0, 0.01, 0.05, 0.5, 0.95, 0.99, 1]).round(2)
    print(f"{family}: of {len(ratios)} texts the least, 1, 5, 50, 95, 99 % and the most: {' '.join(map(str, quantiles))}")
    print(f"  below 0.95: {(ratios < 0.95).sum()}, above 1.33: {(ratios > 4 / 3).sum()}")
    by_kind = defaultdict(list)
    for kind, ratio in zip(kinds, ratios):
        by_kind[kind].append(ratio)
    worst = sorted((min(all_), kind) for kind, all_ in by_kind.items())[:6]
    print("  lowest: " + ", ".join(f"{kind} {ratio:.2f}" for ratio, kind in worst))
    return {kind: (min(all_), max(all_)) for kind, all_ in by_kind.items()}


def main():
    folder = sys.argv[1]
    texts, counts = lines(f"{folder}/texts.ndjson"), lines(f"{folder}/counts.ndjson")
    names, *classes = lines(f"{folder}/classes.ndjson")
    # The last text is base64 alone, for its weight.
    *classes, base = numpy.array(classes, float)
    classes, kinds = numpy.array(classes), [text["kind"] for text in texts]
    of_kind = Counter(kinds)
    shares = numpy.array([(NOISE if kind == "noise" else 1) / math.sqrt(of_kind[kind]) for kind in kinds])
    weights = []
    for family in FAMILIES:
        tokens = numpy.array([count[family] for count in counts])
        relative = classes / tokens[:, None]
        found = fitted(relative, shares, [(bound(FLOORS, name, 0.0), bound(CEILINGS, name, CEILING)) for name in names])
        weights.append(numpy.ceil(found * 1_000 - 0.3).astype(int))
        report(family, kinds, relative @ (weights[-1] / 1_000))
    rows = [[int(weight) for weight in row] for row in zip(*weights)]
    of_base64 = [math.ceil(float(base @ own) / base64_text_length()) for own in weights]
    write(names, rows, of_base64)


def base64_text():
    return base64.b64encode(random.Random(3).randbytes(60_000)).decode()


def base64_text_length():
    return len(base64_text())


def write(names, rows, of_base64):
    with open(WEIGHTS, encoding="utf-8") as file:
        head = file.read().split("] = [\n")[0] + "] = [\n"
    listed = "".join(f"    [{', '.join(map(str, row))}], // {name}\n" for name, row in zip(names, rows))
    tail = f"];\n\n/// The weights of a character of base64.\npub(super) const BASE64: [u16; 4] = [{', '.join(map(str, of_base64))}];\n"
    with open(WEIGHTS, "w", encoding="utf-8") as file:
        file.write(head + listed + tail)
    with open(TABLE, encoding="utf-8") as file:
        head = file.read().split("| --- | ---: ")[0]
    with open(TABLE, "w", encoding="utf-8") as file:
        file.write(head + "| --- | ---: | ---: | ---: | ---: |\n")
        for name, row in zip([*names, "character of base64"], [*rows, of_base64]):
            file.write(f"| {name} | {' | '.join(map(str, row))} |\n")


if __name__ == "__main__":
    main()
