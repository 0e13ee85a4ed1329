"""Audit an outsourced k-anonymization: what was proved, with what certainty.

The package follows the parties. `protocol` is what both agree on, without secrets and without
files. `kernels` are compiled loops, the fast twins of `protocol/rules.py`. `files` reads and writes
bytes, and is where hostile input ends. `client` is the data owner, who prepares, verifies and
releases, and the only holder of secrets. `provider` grows the tree and commits to it. `service` is
the provider behind HTTP, and `desk` the owner's pages in a browser. `adversaries` are providers
that misbehave, `conform` is the conformance kit, `checker` a page that checks, `datasets` has a
table to try it on, and `cli` has the commands. docs/architecture.md has the picture.

    prepared = verix_anon.prepare(table, target="income", quasi="all", k=5)
    delivery = verix_anon.LocalProvider().anonymize(prepared.submission)
    verdict = verix_anon.verify(delivery, prepared.manifest, submission=prepared.submission)
    released = verix_anon.release(delivery, prepared.manifest, verdict, table=table)

`__init__.pyi` lists the names that a user needs. They are loaded when first used, so that
`import verix_anon` costs nothing.
"""

import ast
from importlib import import_module

__version__ = "0.3.0"

# The package may lie in a zip, as on Spark's executors, so its loader reads the list.
_LIST = ast.parse(__loader__.get_data(__file__.removesuffix("c") + "i"))
_HOME = {a.name: n.module for n in _LIST.body if isinstance(n, ast.ImportFrom) for a in n.names}
__all__ = sorted(_HOME)


def __getattr__(name):
    if name not in _HOME:
        raise AttributeError(f"module 'verix_anon' has no attribute {name!r}")
    found = import_module(f"verix_anon.{_HOME[name] or name}")
    return getattr(found, name) if _HOME[name] else found


def __dir__():
    return __all__
