# make app: start the dashboard on http://localhost:8501      make test: run the tests      make check: all a change must pass
PYTHON ?= python3
PORT ?= 8501
VENV := .venv
BIN := $(VENV)/bin
APP := $(VENV)/.app-installed
DEV := $(VENV)/.dev-installed

.PHONY: help app test slow long programs exhaustive check check-tests static format gallery pairs claims stubs bench wheel lowest newest torch locked locks audit licenses sbom docs \
  notebooks release-check clean

help:
	@echo "make app      start the dashboard on http://localhost:$(PORT)  (PORT=8502 make app: elsewhere)"
	@echo "make test     run the fast tests in a few minutes (one needs Chromium; BROWSER_PATH=... chooses it)"
	@echo "make slow     run the other tests: browsers, clusters, Postgres, kills, whole grids"
	@echo "make long     run those of them that make check leaves out: more than five seconds each"
	@echo "make programs run all 1,000 random programs and 500 random graphs; make slow runs a sample"
	@echo "make exhaustive  run all cases of sampled grids, random programs included: before a release"
	@echo "make check    what a change must pass: format, lint, types, import contracts, spelling, Dockerfile, tests of up to five seconds"
	@echo "make static   the same without the tests"
	@echo "make format   format the code"
	@echo "make gallery  compute the precomputed figures, then make stubs claims"
	@echo "make pairs    compute the first answers of Explore that are missing"
	@echo "make claims   write docs/truth.md: every claim beside what the gallery measures"
	@echo "make stubs    write the public names of experiments and presets for type checkers"
	@echo "make bench    measure speed and memory against peers: 15 minutes on a quiet machine"
	@echo "make wheel    build the wheel and test it in empty folders: library, dashboard, uvx"
	@echo "make lowest   some tests with the lowest version of every requirement; make newest: the newest"
	@echo "make torch    test models of PyTorch, Hugging Face and Keras, in a separate environment"
	@echo "make locked   some tests with the versions of the image, on Python 3.11 and the newest"
	@echo "make locks    update locks/: versions and hashes of the image"
	@echo "make audit    check locked packages for known vulnerabilities; make licenses: list every license; make sbom: a bill of materials"
	@echo "make docs     build the public site in .docs/site: lecture, Live, gallery, documentation; make notebooks: recompute the notebooks of examples/"
	@echo "make release-check  name the missing steps of a release"
	@echo "make clean    remove the virtual environment and every cache"

app: $(APP)
	$(BIN)/python -m streamlit run app.py --server.port=$(PORT)

# Caching the bytecode of tests halves their import time in every process.
test slow long programs exhaustive check-tests: export PYTHONDONTWRITEBYTECODE :=
# Without it every process that a test starts compiles JAX again.
lowest newest torch locked docs: export UV_COMPILE_BYTECODE := 1

test: TIER := not slow and not gpu
slow: TIER := slow and not gpu
long: TIER := long and not gpu
check-tests: TIER := not long and not gpu
test slow long check-tests: $(DEV)
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m "$(TIER)" $(PYTEST_ARGS)

programs: $(DEV)
	EXHAUSTIVE=1 $(BIN)/python -m pytest -n 2 --dist load $(PYTEST_ARGS) \
	  tests/traced/test_random_programs.py tests/traced/test_random_blocks.py tests/networks/graphs/test_random_graphs.py

exhaustive: TIER := not gpu
exhaustive: $(DEV)
	EXHAUSTIVE=1 $(BIN)/python -m pytest -n 2 --dist load -m "$(TIER)" $(PYTEST_ARGS)

# Both tiers in one run: tests are compiled once, and few browsers overlap.
check: static
	$(MAKE) check-tests

static: $(DEV)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy -n 2 .
	$(BIN)/lint-imports
	$(BIN)/codespell
	$(BIN)/hadolint Dockerfile

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# All presets, or some: make gallery PRESETS="liu-fig1-left liu-fig2". An interrupted call resumes.
gallery: $(APP)
	$(BIN)/python -m linearity_lab gallery $(PRESETS)
	$(MAKE) stubs claims

# First answers of Explore, all missing ones or some: make pairs PAIRS="convnet.mnist resnet.sine".
pairs: $(APP)
	$(BIN)/python .ci/pairs.py $(PAIRS)

# Compare every claim with the gallery.
claims: $(DEV)
	$(BIN)/python -m tests.claims.page

# Public names and typed presets; needed after a change of an experiment's classes or presets.
stubs: $(DEV)
	$(BIN)/python .ci/stubs.py

# Everything, with the peers' environments; or BENCH_ARGS="--only kernel".
bench: $(DEV)
	$(BIN)/python -m benchmarks $(BENCH_ARGS)
	$(BIN)/python -m benchmarks.table

# Writes the wheel to dist/.
wheel: $(DEV)
	$(BIN)/python .ci/wheel.py

# A minute of tests that cover every requirement; only make test checks types.
SAMPLE := tests/runs tests/data tests/dashboard/test_settings.py tests/dashboard/test_pages.py tests/hosting \
  tests/kernels/test_empirical.py tests/early_time/test_linear_models.py

lowest: RESOLUTION := lowest-direct
newest: RESOLUTION := highest
lowest newest: $(DEV)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-$@
	$(BIN)/uv pip install --quiet --python .venv-$@ --upgrade --resolution $(RESOLUTION) -r requirements-dev.txt
	.venv-$@/bin/python -m pytest -q -n 2 -p no:cacheprovider -m "not slow and not gpu" -o addopts="-ra --import-mode=importlib" $(SAMPLE)

# Large libraries; only packages are downloaded.
torch: $(DEV)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv-torch
	$(BIN)/uv pip install --quiet --python .venv-torch -r requirements.txt -r requirements-torch.txt \
	  beartype hypothesis ipykernel keras nbclient pytest pytest-timeout transformers
	.venv-torch/bin/python -m pytest -q -p no:cacheprovider -o addopts="-ra --import-mode=importlib" tests/libraries

# The image has Python 3.11 or later: a minute of tests on the oldest and the newest.
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

# Offline once its packages are installed. Warnings are errors: links, pictures, names without docstrings.
docs: $(DEV)
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python .venv-docs
	$(BIN)/uv pip install --quiet --python .venv-docs -r requirements-docs.txt
	.venv-docs/bin/python .ci/pages.py
	.venv-docs/bin/python -m linearity_lab site --out .docs/site --docs
	.venv-docs/bin/python -m sphinx -W --keep-going -q -b html -d .docs/read docs .docs/site/docs
	.venv-docs/bin/python .ci/links.py .docs/site
	@echo "The site is in .docs/site/index.html"

# CONTRIBUTING.md, Releases.
release-check: $(DEV)
	$(BIN)/python .ci/release.py

notebooks: $(DEV)
	$(BIN)/python -m tests.examples.notebooks

clean:
	rm -rf $(VENV) .venv-lowest .venv-newest .venv-torch .venv-locked-* .venv-docs .docs .peers .bench .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis build dist *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps are touched only after pip succeeded, so an interrupted installation resumes.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Linearity Lab needs Python 3.11 or later; '$(PYTHON)' is missing or older." >&2; \
	  echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

# The project itself, too: scripts and notebooks find it from any folder.
$(APP): pyproject.toml hatch_build.py requirements.txt requirements-cli.txt requirements-core.txt $(VENV)/.created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(DEV): requirements-dev.txt requirements-cluster.txt requirements-postgres.txt $(APP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@
