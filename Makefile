# hinge: everything a developer or CI types. Each target sets up what it needs.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(shell find native -name '*.[ch]pp' 2>/dev/null) CMakeLists.txt
WORKERS ?= 2
# One BLAS thread per worker: the workers fill the cores already, and idle BLAS threads spin.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

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

demo: build
	$(BIN)/hinge fit heart --out demo_output --time 20

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

docs: build
	$(BIN)/python tools/pages.py docs/_build

# The core with AddressSanitizer and UndefinedBehaviorSanitizer, installed beside the normal one, under the tests that
# call it in this process. -S keeps the editable install out of the way.
SANITIZED := build/sanitize/site
SANITIZE_TESTS ?= tests/contracts tests/theory tests/models
SANITIZE_ARGS ?=
$(SANITIZED)/.built: $(VENV)/.installed $(NATIVE) $(shell find src -name '*.py')
	rm -rf $(SANITIZED)
	$(BIN)/python -m pip install -q --no-build-isolation --no-deps --target $(SANITIZED) \
	  -C cmake.define.HINGE_SANITIZE=ON -C build-dir=build/sanitize/cmake .
	touch $@

test-sanitize: $(SANITIZED)/.built
	LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libstdc++.so)" \
	ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:use_sigaltstack=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 OPENBLAS_NUM_THREADS=1 \
	PYTHONMALLOC=malloc PYTHONPATH=$(SANITIZED):$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))') \
	$(BIN)/python -S -m pytest -q -m "not slow" -p no:cacheprovider --dist worksteal \
	  --tx "$(WORKERS)*popen//python=$(BIN)/python -S" $(SANITIZE_TESTS) $(SANITIZE_ARGS)

lint: build
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $$(find native -name '*.[ch]pp')

format: build
	$(BIN)/python tools/stubs.py
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .
	$(BIN)/clang-format -i $$(find native -name '*.[ch]pp')

clean:
	rm -rf build dist $(VENV)
