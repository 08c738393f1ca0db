from __future__ import annotations

from pathlib import Path

from ..snippets import run_page


def test_the_guides_snippets_run_as_they_stand(drop_in: None, url: str, tmp_path: Path) -> None:
    page = Path(__file__).parents[4] / "docs" / "guide" / "ufo.md"
    names = run_page(page.name, instead=("http://127.0.0.1:8733", url))
    assert names["board"].get_value("word/result") == "saved"
    assert names["ufo"].refused() == []
