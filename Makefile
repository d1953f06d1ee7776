# Prepares .venv and calls the invoke task of the same name; `.venv/bin/invoke --list` shows them all.
PYTHON ?= python3
VENV := .venv
INVOKE := $(VENV)/bin/invoke

.PHONY: demo check test test-all lint docs bench bench-check bench-core bench-pipeline bench-scale bench-scheduler bench-webhooks mutants soak clean
demo check test test-all lint docs bench bench-check bench-core bench-pipeline bench-scale bench-scheduler bench-webhooks mutants soak: $(VENV)/.ready
	@$(INVOKE) $@

# uv, itself installed by pip, fills the environment in seconds; `requirements.lock` fixes every version.
$(VENV)/.ready: requirements.lock
	@echo "Preparing $(VENV) (once; about half a minute) ..."
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: set PYTHON=python3.12, say")'
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements.lock)"
	@env -u UV_PYTHON $(VENV)/bin/uv pip sync --quiet --compile-bytecode --python $(VENV)/bin/python requirements.lock
	@touch $@

clean:
	rm -rf $(VENV) .*_cache .hypothesis
