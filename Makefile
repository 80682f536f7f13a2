# Every target does its own set-up; the first one takes minutes, later ones a second.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
# A new lock file makes a new stamp, so that the environment is made anew exactly then.
STAMP := $(VENV)/.ready-$(shell cat uv.lock pyproject.toml | cksum | tr -d ' ')
JAVA_STAMP := $(VENV)/.java-ready
SECONDS ?=

PYTEST := $(BIN)/python -m pytest

.PHONY: help setup java demo clean-demo test test-fast test-faults lint format screenshots bench-ingest

help: ## Show what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): uv.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@if command -v uv > /dev/null; then UV=uv; else $(BIN)/python -m pip install --quiet uv; UV=$(BIN)/uv; fi; \
	  UV_PROJECT_ENVIRONMENT=$(VENV) $$UV sync --frozen --inexact --quiet
	@rm -f $(VENV)/.ready-*
	@touch $@

# Finds Java 17+, installs it where it may, or says in one line what to run.
$(JAVA_STAMP): $(STAMP)
	@$(BIN)/python -m ingest_platform.spark.java_setup
	@touch $@

java: $(JAVA_STAMP)

setup: $(STAMP) $(JAVA_STAMP) ## Environment, Java, jars
	@$(BIN)/ingest-platform jars download
	@$(BIN)/ingest-platform jars warm

demo: setup ## Kafka, S3, a producer, the stream and the Dagster UI; SECONDS=180 ends and audits
	@$(BIN)/ingest-platform demo $(if $(SECONDS),--seconds $(SECONDS))

clean-demo: $(STAMP) ## Forget the demo's data
	@$(BIN)/ingest-platform demo --forget

test: setup ## The whole suite, <= 25 minutes on two cores
	$(PYTEST)

test-fast: $(STAMP) ## Without JVMs, <= 2 minutes
	$(PYTEST) -m "not slow and not fault" ingest_platform_tests/unit

test-faults: setup ## Only the fault suite
	$(PYTEST) -m fault

lint: $(STAMP) ## Style, types, direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports --no-logo 2> /dev/null || $(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

screenshots: setup ## Pictures of the running demo into docs/images
	$(BIN)/python -m ingest_platform_tests.browser.screenshots

bench-ingest: setup ## Against a plain script and a single process
	$(BIN)/python -m ingest_platform_tests.benchmarks.bench_ingest
