"""Loads the HTML templates of a package: strict, and with every value escaped."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def templates_of(*packages: str) -> Environment:
    """Return the templates of packages such as `verix_anon.desk`; earlier packages win."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
