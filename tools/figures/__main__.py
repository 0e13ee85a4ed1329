"""`python -m tools.figures`."""

from tools.documents.markdown import ROOT, pages
from tools.figures import filled


def main() -> None:
    """Write every figure of every page."""
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if (now := filled(text)) != text:
            path.write_text(now, encoding="utf-8")
            print(f"{path.relative_to(ROOT)} has new figures.")


if __name__ == "__main__":
    main()
