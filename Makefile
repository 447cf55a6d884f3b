# make paper [SUITE=mini]   run every notebook of a suite; tables and figures land in figures/<suite>/
# make test                 run the tests
# make test-browser         run every notebook in JupyterLab in Chromium
# make lab                  open JupyterLab
PYTHON ?= python3
SUITE ?= mini
BIN := .venv/bin
READY := .venv/.ready

.PHONY: paper test test-browser lab clean

paper: $(READY)
	$(BIN)/mirblab batch $(SUITE)

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-browser: $(READY)
	$(BIN)/python -m pip install --quiet playwright
	$(BIN)/python -m pytest -m browser tests/test_browser.py tests/test_mapview.py

lab: $(READY)
	$(BIN)/jupyter lab --ServerApp.root_dir=notebooks --KernelManager.transport_encryption=auto

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $(READY)

clean:
	rm -rf .venv cache figures build dist
