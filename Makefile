# make app: the dashboard on http://localhost:8501      make test: the tests      make check: all a change must pass
PYTHON ?= python3
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
APP := $(VENV)/.app-installed
DEV := $(VENV)/.dev-installed

.PHONY: help app test slow check check-tests static format gallery claims bench bench-quick wheel lowest newest torch locked locks audit licenses sbom docs \
  notebooks clean

help:
	@echo "make app      start the dashboard on http://localhost:$(PORT)  (PORT=8502 make app: elsewhere)"
	@echo "make test     the tests, in a few minutes (one in a browser needs Chromium, BROWSER_PATH=... to choose one)"
	@echo "make slow     the other tests: browsers, clusters, Postgres, kills, whole grids"
	@echo "make check    what a change must pass: format, lint, types, import contracts, Dockerfile, then all tests"
	@echo "make static   the same without the tests"
	@echo "make format   rewrite the code in the house style"
	@echo "make gallery  compute the figures that are shown before anything is run, and make claims"
	@echo "make claims   write docs/truth.md: every claim beside what the gallery measures"
	@echo "make bench    measure speed and memory against peers, in a quarter of an hour of a quiet machine"
	@echo "make wheel    build the wheel and try it in empty folders: the library, the dashboard, uvx"
	@echo "make bench-quick  which ratio to a plain route has fallen by more than a fifth, in three minutes"
	@echo "make lowest   a part of the tests with the lowest version of every requirement; make newest: the newest"
	@echo "make torch    models of PyTorch, Hugging Face and Keras, in an environment of their own"
	@echo "make locked   a part of the tests with the versions of the image, on Python 3.11 and on the newest"
	@echo "make locks    write locks/ anew: the versions and hashes that an image is built from"
	@echo "make audit    ask for known vulnerabilities of what is locked; make licenses: list every license; make sbom: a bill of materials"
	@echo "make docs     the documentation site, in .docs/html; make notebooks: compute the notebooks of examples/ anew"
	@echo "make clean    remove the virtual environment and every cache"

app: $(APP)
	$(BIN)/python -m streamlit run app.py --server.port=$(PORT)

# To compile the tests takes half the time that reading them takes, in every process: their bytecode is kept.
test slow check-tests: export PYTHONDONTWRITEBYTECODE :=

test: TIER := not slow and not gpu
slow: TIER := slow and not gpu
check-tests: TIER := not gpu
test slow check-tests: $(DEV)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "$(TIER)" $(PYTEST_ARGS)

# Both tiers at once: tests are read and compiled once, and few browsers meet.
check: static
	$(MAKE) check-tests

static: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy .
	$(BIN)/lint-imports
	$(BIN)/hadolint Dockerfile

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Every preset, or some: make gallery PRESETS="liu-fig1-left liu-fig2". Interrupted, it resumes.
gallery: $(APP)
	$(BIN)/python -m ntk_core gallery $(PRESETS)
	$(MAKE) claims

# Every claim beside what the gallery measures of it.
claims: $(DEV)
	$(BIN)/python -m tests.claims.page

# Everything, with the peers' environments; or BENCH_ARGS="--only kernel --peer torch=PATH/python".
bench: $(DEV)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)
	$(BIN)/python -m benchmarks.table

# The wheel lies in dist/ afterwards.
wheel: $(DEV)
	$(BIN)/python .ci/wheel.py

# Exit code 1 where a ratio has fallen, 3 where the machine was too busy to tell.
bench-quick: $(DEV)
	$(BIN)/python -m benchmarks.guard

# What runs in a minute and meets every requirement; types are checked with the versions of make test alone.
SAMPLE := tests/runs tests/data tests/dashboard/test_settings.py tests/dashboard/test_limits.py tests/hosting \
  tests/kernels/test_empirical.py tests/early_time/test_linear_models.py

lowest: RESOLUTION := lowest-direct
newest: RESOLUTION := highest
lowest newest: $(DEV)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-$@
	$(BIN)/uv pip install --quiet --python .venv-$@ --upgrade --resolution $(RESOLUTION) -r requirements-dev.txt
	.venv-$@/bin/python -m pytest -q -n 2 -p no:cacheprovider -m "not slow and not gpu" -o addopts="-ra --import-mode=importlib" $(SAMPLE)

# Large libraries whose models the lab takes; nothing is downloaded but packages.
torch: $(DEV)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-torch
	$(BIN)/uv pip install --quiet --python .venv-torch -r requirements.txt -r requirements-torch.txt \
	  beartype hypothesis keras pytest pytest-timeout transformers
	.venv-torch/bin/python -m pytest -q -p no:cacheprovider -o addopts="-ra --import-mode=importlib" tests/libraries

# The image has Python 3.11 or later: what it is built from is tried on both ends, with what a minute shows of it.
LOCKED_PYTHONS := 3.11 3.13
LOCKED_SAMPLE := tests/runs/test_specs.py tests/kernels/test_empirical.py tests/hosting/test_server.py

locked: $(DEV)
	set -e; for each in $(LOCKED_PYTHONS); do \
	  of_pyenv=$$(ls -d "$$HOME"/.pyenv/versions/$$each.*/bin/python 2>/dev/null | tail -n 1); \
	  $(BIN)/uv venv --quiet --clear --python $${of_pyenv:-$$each} .venv-locked-$$each || { echo "NOT TESTED: no Python $$each here"; continue; }; \
	  $(BIN)/uv pip install --quiet --python .venv-locked-$$each -r requirements-dev.txt --constraint locks/cpu.txt; \
	  .venv-locked-$$each/bin/python -m pytest -q -n 2 -p no:cacheprovider -m "not slow" \
	    -o addopts="-ra --import-mode=importlib" $(LOCKED_SAMPLE); done

locks: $(DEV)
	set -e; for each in cpu cuda12 cuda13; do \
	  [ $$each = cpu ] && extra= || extra="jax[$$each]"; \
	  echo "$$extra" | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
	    --no-header requirements.txt requirements-postgres.txt - --output-file locks/$$each.txt; done

audit: $(DEV)
	$(BIN)/python .ci/audit.py

licenses: $(DEV)
	$(BIN)/python .ci/licenses.py

sbom: $(DEV)
	$(BIN)/python .ci/sbom.py

# Without a network once its packages are there; whatever Sphinx warns of is an error: links, names without words.
docs: $(DEV)
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-docs
	$(BIN)/uv pip install --quiet --python .venv-docs -r requirements-docs.txt
	.venv-docs/bin/python .ci/pages.py
	.venv-docs/bin/python -m sphinx -W --keep-going -q -b html -d .docs/read docs .docs/html
	@echo "The site is in .docs/html/index.html"

notebooks: $(DEV)
	$(BIN)/python -m tests.examples.notebooks

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest .venv-torch .venv-locked-* .venv-docs .docs .peers .bench .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is touched only after pip succeeded, so an interrupted installation is resumed.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Linearity Lab needs Python 3.11 or later; '$(PYTHON)' is missing or older." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(APP): requirements.txt requirements-core.txt $(VENV)/.created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(DEV): requirements-dev.txt requirements-cluster.txt requirements-postgres.txt $(APP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
