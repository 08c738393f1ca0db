#!/usr/bin/env python3
"""Comparison of a running server's token estimates with real tokenizers, on sixty boards in each format.

    check.py FOLDER URL [SEED]

FOLDER is that of `fit`. Each board has steps of one kind of text, or of several. The bar: never more than 5 % too low,
and at most a third too high in 95 of 100. Exits with 1 if an estimate misses it.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import urllib.request
from collections import defaultdict

import texts

BOARDS, KINDS_OF_A_MIXTURE, TEXTS_OF_A_BOARD = 60, 4, 12
ROOMY = 100_000_000
LEAST, MOST, SHARE = 0.95, 4 / 3, 0.95
FORMATS = {"responses": "openai", "anthropic": "anthropic", "gemini": "gemini"}


def ask(method, address, body=None):
    request = urllib.request.Request(address, body, {"Content-Type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        return answer.headers, answer.read()


def boards(folder, seed):
    """Names of boards with their texts; the texts are others than those of the fit, by their seed."""
    draw, by_kind = random.Random(seed), defaultdict(list)
    for text in texts.made(folder, seed):
        if text["kind"] != "noise":
            by_kind[text["kind"]].append(text["text"])
    kinds = sorted(by_kind)
    draw.shuffle(kinds)
    for n in range(BOARDS):
        chosen = kinds[n : n + 1] if n % 2 else draw.sample(kinds, KINDS_OF_A_MIXTURE)
        pool = [text for kind in chosen for text in by_kind[kind]]
        yield " + ".join(chosen), draw.sample(pool, min(TEXTS_OF_A_BOARD, len(pool)))


def items(text):
    """The items of a text: its own where it is a JSON array of them, else one item."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    return [{"text": text}]


def main():
    folder, url = sys.argv[1:3]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 4_711
    told, asked = [], []
    for n, (name, some) in enumerate(boards(folder, seed)):
        session = f"{url}/v1/sessions/tokens-{seed}-{n}"
        steps = [item for text in some for item in items(text)]
        ask("PUT", f"{session}/trajectories", json.dumps(steps, ensure_ascii=False).encode())
        for form, family in FORMATS.items():
            headers, body = ask("GET", f"{session}/prompt?format={form}&max_tokens={ROOMY}")
            parts = [part["text"] for part in json.loads(body)]
            told.append((name, family, int(headers["Blackboard-Tokens"]), len(parts)))
            asked += parts
    lines = "".join(json.dumps({"text": text}) + "\n" for text in asked)
    counter = subprocess.run(["node", os.path.join(folder, "count.mjs")], input=lines, capture_output=True, text=True, check=True)
    counts = [json.loads(line) for line in counter.stdout.splitlines()]
    is_reached = True
    ratios = defaultdict(list)
    for name, family, estimate, parts in told:
        own, counts = counts[:parts], counts[parts:]
        ratios[family].append((estimate / sum(count[family] for count in own), name))
    for family, all_ in ratios.items():
        only = sorted(ratio for ratio, _ in all_)
        within = sum(ratio <= MOST for ratio in only) / len(only)
        reached = only[0] >= LEAST and within >= SHARE
        is_reached &= reached
        print(f"{family}: {len(only)} boards, least {only[0]:.2f}, median {statistics.median(only):.2f}, most {only[-1]:.2f}; {within:.0%} at most a third too high: {'reached' if reached else 'NOT reached'}")
        print("  lowest: " + ", ".join(f"{ratio:.2f} {name}" for ratio, name in sorted(all_)[:3]))
        print("  highest: " + ", ".join(f"{ratio:.2f} {name}" for ratio, name in sorted(all_)[-3:]))
    sys.exit(not is_reached)


if __name__ == "__main__":
    main()
