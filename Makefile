# Every target does its own set-up: `make demo` and `make test` work in a fresh clone.
# Needed beforehand: python3 (3.11 or newer) and make.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup demo clean-demo test test-fast test-faults lint bench-ingest bench-vacuum bench-maintenance-cost bench-drift bench-supervisor bench-auto-compaction bench-commands screenshots

PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 24

setup: $(VENV)/.ready  ## Python environment, Java and jars

# Stamps: remade when what they were made from has changed, so that a second run is instant.
$(VENV)/.synced: uv.lock pyproject.toml bootstrap/environment.py
	$(PYTHON) bootstrap/environment.py $(VENV)
	@touch $@

$(VENV)/.ready: $(VENV)/.synced ingest_platform/spark/jars.lock.toml $(wildcard ingest_platform/spark/*/*.java)
	$(RUN)/ingest-platform setup
	-$(RUN)/ingest-platform jars warm  # drivers start without it too, some seconds slower
	@touch $@

demo: $(VENV)/.ready  ## Everything on this machine, with the UI; SECONDS=180 ends by itself and audits
	@exec $(RUN)/ingest-platform demo $(if $(SECONDS),--seconds $(SECONDS))

clean-demo: $(VENV)/.synced  ## Forget the demo's data
	@$(RUN)/ingest-platform demo --forget

test: $(VENV)/.ready  ## All tests against real Kafka, S3, Spark and Dagster
	$(RUN)/python -m pytest -m "not long" --durations=15

test-fast: $(VENV)/.synced  ## Unit tests without a JVM
	$(RUN)/python -m pytest ingest_platform_tests/unit -m "not slow and not fault" -q

test-faults: $(VENV)/.ready  ## Kills, races, lost responses
	$(RUN)/python -m pytest -m "fault or long" --durations=15

lint: $(VENV)/.synced  ## ruff, pyright, import-linter
	$(RUN)/ruff check
	$(RUN)/ruff format --check
	$(RUN)/pyright
	$(RUN)/lint-imports

bench-ingest: $(VENV)/.ready  ## Speed, beside a plain script and a floor
	$(RUN)/python -m ingest_platform_tests.benchmarks.bench_ingest

bench-supervisor: $(VENV)/.ready  ## What supervising costs; PARTS=all RUNS=20 adds turnovers and recoveries
	$(RUN)/python -m ingest_platform_tests.benchmarks.bench_supervisor $(if $(PARTS),--parts $(PARTS)) $(if $(RUNS),--runs $(RUNS))

bench-vacuum: $(VENV)/.ready  ## Vacuum of 10,000 files in 1,000 partitions, beside plain VACUUM
	$(RUN)/python -m ingest_platform_tests.benchmarks.bench_vacuum

bench-maintenance-cost: $(VENV)/.ready  ## Bytes rewritten per byte ingested, S3 requests per hour
	$(RUN)/python -m ingest_platform_tests.benchmarks.bench_maintenance_cost

bench-drift: $(VENV)/.ready  ## 1,000 batches in one driver and apart; BATCHES=11500 is two days
	$(RUN)/python -m ingest_platform_tests.benchmarks.bench_drift $(if $(BATCHES),--batches $(BATCHES))

bench-auto-compaction: $(VENV)/.ready  ## What a writer waits for: inline against asynchronous compaction
	$(RUN)/python -m ingest_platform_tests.benchmarks.bench_auto_compaction

bench-commands: $(VENV)/.ready  ## audit of 100,000 commits, status of 50 streams, local and on S3
	$(RUN)/python -m ingest_platform_tests.benchmarks.bench_commands

screenshots: $(VENV)/.ready  ## docs/images from a running demo; needs chromium and chromium-driver
	$(RUN)/python -m ingest_platform_tests.browser.screenshots docs/images
