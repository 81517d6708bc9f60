# hinge: everything a developer or CI types. Each target sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(shell find native -name '*.[ch]pp' 2>/dev/null) CMakeLists.txt
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

.PHONY: build demo test test-all test-sanitize coverage lint format bench docs clean

$(VENV)/.installed: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q "scikit-build-core>=1.0" "nanobind>=3.0.1" cmake ninja
	$(BIN)/python -m pip install -q --no-build-isolation -e '.[test,lint]'
	touch $@ $(VENV)/.built

$(VENV)/.built: $(VENV)/.installed $(NATIVE)
	$(BIN)/python -m pip install -q --no-build-isolation --no-deps -e .
	touch $@

build: $(VENV)/.built

test: build
	$(PYTEST) -m "not slow"

test-all: build
	$(PYTEST)

coverage: build
	$(PYTEST) -m "not slow" --cov=hinge --cov-report=term-missing:skip-covered --cov-report=html

$(VENV)/.bench: pyproject.toml $(VENV)/.built
	$(BIN)/python -m pip install -q --no-build-isolation -e '.[bench]'
	touch $@

# make bench FAMILY=linear ARGS="--task 'lasso*' --json results.json"
FAMILY ?= linear
bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks $(FAMILY) $(ARGS)

lint: build
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $$(find native -name '*.[ch]pp')

format: build
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .
	$(BIN)/clang-format -i $$(find native -name '*.[ch]pp')

clean:
	rm -rf build dist $(VENV)
