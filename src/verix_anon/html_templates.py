"""The templates of a package as HTML: strict, and everything that they show is escaped."""

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined


def templates_of(*packages: str) -> Environment:
    """The folders `templates` of packages such as `verix_anon.desk`, the first one first."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(package) for package in packages]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
