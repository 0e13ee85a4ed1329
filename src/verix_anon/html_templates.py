"""Loads the HTML templates of a package: strict, and with every value escaped."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined, pass_context
from jinja2.runtime import Context

from verix_anon.translation import translated


def templates_of(*packages: str) -> Environment:
    """Return the templates of packages such as `verix_anon.desk`, and the design; earlier ones win.

    The filter `say` shows a sentence of the client in the page's `language`.
    """
    environment = Environment(
        loader=ChoiceLoader([*map(PackageLoader, packages), PackageLoader("verix_anon", "design")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["say"] = _say
    return environment


@pass_context
def _say(context: Context, sentence: str) -> str:
    return translated(sentence, str(context["language"]))
