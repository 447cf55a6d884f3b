# make paper [SUITE=mini]   run every notebook of a suite; tables and figures land in figures/<suite>/
# make test                 run the tests, except those that need a browser and the long ones
# make test-browser         every notebook, the explorer, tables and attacks in JupyterLab in Chromium, half an hour;
#                           two minutes with WHICH="browser and not slow"
# make test-faults         every write failed, killed and lost, damaged stores and inputs, half an hour; docs/reliability.md
# make test-cluster        a Dask cluster whose workers (sixty) and scheduler are killed while they make runs, and a full disk; some minutes
# make docs                build the pages that explain all this into docs/site/
# make lab                  open JupyterLab on START.md (with LAB=--no-browser: print its address only); students' copies of the lessons are in lessons/
# make clean                remove the environment and what was built; figures, caches and data stay (mirblab cache --remove)
PYTHON ?= python3
SUITE ?= mini
WHICH ?= browser
N ?= 2
BIN := .venv/bin
# Tests and notebooks run in many processes, each of which would otherwise compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
SHELL := bash -o pipefail
READY := .venv/.ready
AS_ROOT := $(if $(filter 0,$(shell id -u)),--allow-root)
CHROMIUM := { command -v chromium || command -v google-chrome; } > /dev/null

.PHONY: paper test test-browser test-faults test-cluster docs lab clean

paper: $(READY)
	$(BIN)/mirblab batch $(SUITE)

test: $(READY)
	$(BIN)/ruff check .
	@$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest -n 2 --dist worksteal; tests=$$?; wait $$types && exit $$tests

test-browser: $(READY)
	$(BIN)/python -m pip install --quiet playwright
	@$(CHROMIUM) || { apt-get update && apt-get install --yes --no-install-recommends chromium; } || $(BIN)/playwright install chromium
	$(BIN)/python -m pytest -n $(N) --dist load -m "$(WHICH)" $$(grep -lr "mark.browser" tests --include="*.py")

test-faults: $(READY)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "faults or (attacks and not browser)" --figures docs/reliability.md \
		tests/faults $$(grep -lr "mark.attacks" tests --include="*.py")

test-cluster: $(READY)
	$(BIN)/python -m pytest -m "faults or not faults" tests/app/test_places.py

docs: $(READY)
	$(BIN)/python docs/build.py

lab: $(READY)
	@$(BIN)/mirblab lessons --keep --out lessons > /dev/null
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/jupyter lab $(AS_ROOT) $(LAB) --log-level=WARN --ServerApp.root_dir=. --KernelManager.transport_encryption=auto \
		--LabApp.app_settings_dir=.jupyter "--LabApp.default_url=/lab/tree/START.md"

$(READY): requirements.lock pyproject.toml
	@echo "Setting up .venv, once: about 2 GB, some minutes."
	$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --requirement requirements.lock | awk -v all=$$(grep -c == requirements.lock) \
		'/^(Collecting|Processing|Requirement)/ { printf "\r%d of %d libraries", n < all ? ++n : n, all } /^Installing/ { print "\nInstalling them." } { fflush() }'
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@echo "Compiling UMAP, so that no notebook has to."
	@MIRBLAB_HOME=.venv $(BIN)/python -c "import numpy as np; from mirblab.analysis import project; project(np.eye(12), range(12))"
	touch $(READY)

clean:
	rm -rf .venv build dist docs/site
