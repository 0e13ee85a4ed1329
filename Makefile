# `make demo` and `make test` are all a newcomer needs; each sets up what it needs of .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Without kept bytecode every worker and every process that a test starts would compile all again.
export PYTHONDONTWRITEBYTECODE =
# What using the package needs, and with it what tests, studies and pages do.
USED := $(VENV)/.used
STAMP := $(VENV)/.installed
# Two workers; each takes tests from the other when it has none left.
PYTEST := $(BIN)/pytest -q -n 2 --dist worksteal
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# The versions that pyproject.toml claims.
PYTHONS := $(shell sed -n 's/.*"Programming Language :: Python :: \(3\.[0-9]*\)".*/\1/p' pyproject.toml)

.PHONY: setup system check test test-all test-times coverage pythons audit release bench paper paper-quick peers vectors kit stamps map figures fuzz recheck demo screenshot pictures docs reference notebooks spark-env clean

setup: $(STAMP)

$(USED): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit("verix-anon needs Python 3.11 or newer") if sys.version_info < (3, 11) else None'
	@echo "Setting up $(VENV) with the pinned packages, once; it takes a minute or so."
	$(PYTHON) -m venv $(VENV)
	# What the demo does not import is not compiled either: half of the time.
	$(INSTALL) --no-compile -e .
	touch $(USED)

$(STAMP): $(USED)
	@echo "Adding what tests, studies and pages need, once; it takes a few minutes."
	$(INSTALL) -e '.[dev,bench,paper,report,docs,excel,statistics,sql,remote,service,desk,s3]'
	touch $(STAMP)

# System packages that some tests need, each with a program that shows it is there; without them
# those tests are skipped, with the reason.
SYSTEM_PACKAGES := chromium:chromium fonts-dejavu-core:fonts postgresql:postgres libreoffice-calc-nogui:soffice openjdk-17-jre-headless:java nginx-light:nginx
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo -n)

system:
	@lacking=; \
	for pair in $(SYSTEM_PACKAGES); do \
	  package=$${pair%%:*}; program=$${pair##*:}; \
	  case $$program in \
	    fonts) [ -d /usr/share/fonts/truetype/dejavu ] ;; \
	    postgres) ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null 2>&1 ;; \
	    *) command -v $$program >/dev/null 2>&1 ;; \
	  esac && echo "$$package is there" || lacking="$$lacking $$package"; \
	done; \
	if [ -z "$$lacking" ]; then \
	  :; \
	elif ! command -v apt-get >/dev/null 2>&1; then \
	  echo "no apt-get here: tests are skipped unless you install$$lacking"; \
	elif [ -n "$(SUDO)" ] && ! $(SUDO) true 2>/dev/null; then \
	  echo "neither root nor sudo: tests are skipped unless you install$$lacking"; \
	else \
	  { $(SUDO) apt-get update -qq && \
	    $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$lacking; } || \
	  echo "could not be installed, and so tests are skipped:$$lacking"; \
	fi

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_architecture.py
	$(BIN)/python -m tools.mannerisms

# Somebody else's code checks the privacy sheet, in an environment of its own.
PYCANON := .cache/peers/pycanon/installed

$(PYCANON): $(STAMP)
	-$(BIN)/python -m experiments.studies.peers.tools.setup pycanon

# Spark wants an older pandas than ours, and so its tests have an environment of their own.
SPARK := .cache/spark/installed

spark-env: $(SPARK)

$(SPARK): tests/provider/spark-requirements.txt
	-$(PYTHON) -m venv --clear .cache/spark && \
	.cache/spark/bin/python -m pip install --quiet --disable-pip-version-check -r $< && cp $< $@

# Every behaviour, by something: what a contributor waits for.
test: setup
	$(PYTEST) -m "not long"

# The long tests alone, so that `make test test-all` runs each test once: what a release waits for.
test-all: setup $(PYCANON) $(SPARK)
	$(PYTEST) -m long

# Both tiers, and results/test-times.md with what they took.
test-times: setup $(PYCANON) $(SPARK)
	$(BIN)/python -m tools.test_times

# Both tiers. A tracer makes everything slower, processes and servers above all: by itself, before
# a release.
coverage: setup $(PYCANON) $(SPARK)
	$(PYTEST) --cov --cov-report=term

# `make test` on every Python that is claimed and found, each in an environment of its own.
pythons:
	@ran=; absent=; \
	for version in $(PYTHONS); do \
	  if python$$version -c '' 2>/dev/null; then \
	    $(MAKE) test PYTHON=python$$version VENV=.cache/pythons/$$version || exit 1; \
	    ran="$$ran $$version"; \
	  else \
	    absent="$$absent $$version"; \
	  fi; \
	done; \
	echo "Passed on Python:$${ran:- none}. Not found on PATH:$${absent:- none}."

# Known vulnerabilities of the pinned packages. It needs a network, and fails without an answer.
audit: setup
	$(BIN)/python -m tools.release audit

# The wheel and the sdist in dist/, checked, tested, and tried in empty environments; RELEASE.md.
release: setup
	$(BIN)/python -m tools.release check
	$(MAKE) audit
	$(MAKE) check
	$(MAKE) coverage
	$(BIN)/python -m tools.release build

bench: setup
	$(BIN)/python -m tools.bench
	$(BIN)/python -m tools.figures

# Every study, then results/RESULTS.md and the figures; goes on where it was stopped.
paper: setup
	$(BIN)/python -m experiments
	$(BIN)/python -m tools.figures

paper-quick: setup
	$(BIN)/python -m experiments --quick

# Other anonymizers, for the study `peers`: each in an environment of its own under .cache/peers.
peers: setup
	$(BIN)/python -m experiments.studies.peers.tools.setup

# After a change of compiled code: what numba kept of its callers is not used again.
stamps: setup
	$(BIN)/python -m tools.stamps

# The picture of the packages in docs/architecture.md.
map: setup
	$(BIN)/python -m tools.import_map

# What pages quote of results/, computed again.
figures: setup
	$(BIN)/python -m tools.figures

vectors: setup
	$(BIN)/python -m tools.vectors

# The conformance kit that the package holds, after a change of its cases.
kit: setup
	$(BIN)/python -m tools.kit --write

# Spoiled deliveries and submissions, then odd tables to release; `make fuzz SEED=7` is one run again.
COUNT ?= 1000000
TABLES ?= 10000
SEEDED := $(if $(SEED),--seed $(SEED))

fuzz: setup
	$(BIN)/python -m tools.fuzz --count $(COUNT) $(SEEDED)
	$(BIN)/python -m tools.fuzz --target release --count $(TABLES) $(SEEDED)

# Random tables released with random options, and their files counted again; writes results/release-recheck.md.
recheck: setup $(PYCANON)
	$(BIN)/python -m tools.fuzz.recheck_campaign $(SEEDED)

demo: $(USED)
	$(BIN)/verix-anon demo

# The picture in the README: the report on a provider that takes a shortcut.
screenshot: setup
	$(BIN)/python -m tools.screenshot docs/images/report.png

# The pictures of the desk's pages: one job, from its table to its release, in a browser.
pictures: setup
	$(BIN)/python -m tools.desk docs/images
	$(BIN)/python -m tools.check_pictures docs/images

# The site, in build/docs/site. It needs no network, neither to build nor to read.
docs: setup
	$(BIN)/python -m tools.documents site

reference: setup
	$(BIN)/python -m tools.documents reference

notebooks: setup
	$(BIN)/python -m tools.documents notebooks

clean:
	rm -rf .venv .cache/pythons build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src -name '*.nb[ci]' -delete
