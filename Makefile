# `make help` lists what there is. All that is needed beforehand is a Rust toolchain, and root or sudo.

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint bench images build

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

setup: ## install and start Docker, build the executor and the Python environment
	scripts/setup demo

demo: setup ## see an issue become a pull request, on this machine
	scripts/with-docker cargo run --quiet --locked --example demo

test: ## run all tests, with the real Docker engine
	scripts/setup test
	@if cargo nextest --version >/dev/null 2>&1; then \
	  echo scripts/with-docker cargo nextest run --locked; \
	  scripts/with-docker cargo nextest run --locked; \
	else \
	  echo scripts/with-docker cargo test --locked; \
	  scripts/with-docker cargo test --locked; \
	fi

lint: ## check format and lints
	cargo fmt --check
	cargo clippy --all-targets --locked -- -D warnings

bench: PROFILE ?= release
bench: ## measure the program's own time, memory and requests (PROFILE=dev for a quicker build)
	PROFILE=$(PROFILE) scripts/setup bench
	scripts/with-docker cargo run --quiet --locked --profile $(PROFILE) --example bench

images: ## build the images of all five environments
	scripts/setup images

build: ## build the program and its static executor
	cargo build --locked
	scripts/setup executor
