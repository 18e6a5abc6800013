# `make help` lists what there is. All that is needed beforehand is a Rust toolchain, and root or sudo.

.DEFAULT_GOAL := help
# CARGO_TARGET_DIR, or the user's own cargo configuration, may name another folder.
TARGET_DIR = $(shell scripts/target-dir)
# A program of harness/, and the program that it starts.
BUILD_HARNESS = cargo build --locked --package coding-agent --package coding-agent-harness --bin coding-agent
.PHONY: help setup demo test test-postgres test-engines test-kubernetes test-model lint bench bench-index chaos soak fuzz attack histories replay solve-rate fresh deny advisories images images-all build install uninstall dist deb test-dist reference site

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

setup: ## install and start Docker, build the executor and the Python environment
	scripts/setup demo

demo: ## see an issue become a pull request, on this machine; with REVIEW=1 a second model judges plan and result, with DASHBOARD=1 you look at the run afterwards
	@scripts/setup demo
	@# `cargo run` would not build the program itself, which the demo starts.
	$(BUILD_HARNESS) --bin demo
	@REVIEW=$(REVIEW) DASHBOARD=$(DASHBOARD) scripts/with-docker "$(TARGET_DIR)/debug/demo"

test: ## run all tests, with the real Docker engine
	scripts/setup test
	@# Two tests for each processor: most of a test's time is waiting, for containers above all.
	@if cargo nextest --version >/dev/null 2>&1; then \
	  echo scripts/with-docker cargo nextest run --workspace --locked --no-fail-fast --test-threads $$((2 * $$(nproc))); \
	  scripts/with-docker cargo nextest run --workspace --locked --no-fail-fast --test-threads $$((2 * $$(nproc))); \
	else \
	  echo scripts/with-docker cargo test --workspace --locked --no-fail-fast -- --test-threads $$((2 * $$(nproc))); \
	  scripts/with-docker cargo test --workspace --locked --no-fail-fast -- --test-threads $$((2 * $$(nproc))); \
	fi

test-postgres: ## run the tests of the store, and of runs from label to request, with PostgreSQL as the store (SHORT=1)
	scripts/setup test-postgres
	SHORT=$(SHORT) scripts/with-docker scripts/with-postgres scripts/test-postgres

test-engines: ## run the tests of containers on podman, and on podman 5, Docker 26 and 28 from newer Debian releases, also rootless (ONLY="podman", SHORT=1)
	scripts/setup test-engines
	SHORT=$(SHORT) scripts/with-docker scripts/engines $(ONLY)

test-kubernetes: ## run the tests with a real Kubernetes as the engine, which is built from Debian's source once; as root or with sudo (ONLY="cluster attack")
	scripts/setup test-kubernetes
	cargo nextest run --workspace --locked --features coding-agent/kubernetes --no-run
	$(BUILD_HARNESS) --features coding-agent/kubernetes --bin attack
	scripts/with-docker scripts/with-kubernetes scripts/test-kubernetes $(ONLY)

test-model: ## work on tasks with a real small model on llama.cpp's server, and with Ollama where OLLAMA_HOST is set (ONLY="task slow")
	scripts/setup test-model
	$(BUILD_HARNESS) --bin real_model
	@scripts/with-docker "$(TARGET_DIR)/debug/real_model" $(ONLY)

lint: ## check format and lints
	cargo fmt --all --check
	cargo fmt --check --manifest-path fuzz/Cargo.toml
	cargo clippy --workspace --all-targets --locked -- -D warnings

bench: PROFILE ?= release
bench: ## measure the program's own time, memory and requests, beside mini-swe-agent's (PROFILE=dev SHORT=1 ONLY="turns peer")
	@PROFILE=$(PROFILE) SHORT=$(SHORT) scripts/setup bench
	SHORT=$(SHORT) scripts/with-docker cargo run --quiet --locked --profile $(PROFILE) --package coding-agent-harness --bin bench -- $(ONLY)

bench-index: PROFILE ?= release
bench-index: ## measure the code index: what it finds, how fast, how large (ISSUES=file REPOS=folder of bare repositories DOCUMENTED=1 EMBEDDINGS=url MODEL=name MOST=issues)
	scripts/setup bench-index
	@ISSUES="$(ISSUES)" REPOS="$(REPOS)" DOCUMENTED="$(DOCUMENTED)" EMBEDDINGS="$(EMBEDDINGS)" MODEL="$(MODEL)" MOST="$(MOST)" cargo run --quiet --locked --profile $(PROFILE) --package coding-agent-harness --bin bench_index

chaos: PROFILE ?= dev
chaos: ## kill and disturb the program in many ways, and count what was lost (ROUNDS=200 SEED=n ONLY="kill clock:3", or CLUSTER=3 machines)
	@PROFILE=$(PROFILE) CLUSTER=$(CLUSTER) scripts/setup chaos
	$(BUILD_HARNESS) --bin chaos --profile $(PROFILE)
	@ROUNDS=$(ROUNDS) SEED=$(SEED) SOAK=$(SOAK) KILLS=$(KILLS) CLUSTER=$(CLUSTER) scripts/with-docker "$(TARGET_DIR)/$(PROFILE:dev=debug)/chaos" $(ONLY)

soak: ## work on many tasks in one long-running program while things go wrong (SOAK=100 SEED=n PROFILE=release; KILLS=0: in one process)
	@$(MAKE) --no-print-directory chaos SOAK=$(or $(SOAK),100)

fuzz: ## feed strangers' bytes to whatever reads them, and count what falls over (SECONDS=60 READERS="reply plan")
	scripts/setup fuzz
	@scripts/fuzz $(or $(SECONDS),60) $(READERS)

attack: ## attack the program in every way we know, and count what got through (ROUNDS=3 SHORT=1 ONLY="commit item:mention self")
	scripts/setup attack
	$(BUILD_HARNESS) --bin attack
	@ROUNDS=$(ROUNDS) SHORT=$(SHORT) scripts/with-docker "$(TARGET_DIR)/debug/attack" $(ONLY)
	@# Every reader of strangers' bytes belongs to it, which takes ten minutes more; the short form leaves that out.
	@if [ -z "$(SHORT)$(ONLY)" ]; then $(MAKE) --no-print-directory fuzz; fi

histories: ## take bare repositories with their whole histories from label to pull request (REPOS=folder ONLY="one two")
	scripts/setup chaos
	$(BUILD_HARNESS) --bin histories
	@REPOS="$(REPOS)" scripts/with-docker "$(TARGET_DIR)/debug/histories" $(ONLY)

replay: ## play what other agents were recorded doing through the program (TRAJECTORIES=folder REPOS=folder ONLY="name" EDITS_AS_TOOLS=1), or a small set that ships; docs/replay.md has more
	scripts/setup replay
	$(BUILD_HARNESS) --bin replay
	@TRAJECTORIES="$(TRAJECTORIES)" REPOS="$(REPOS)" scripts/with-docker "$(TARGET_DIR)/debug/replay" $(ONLY)

solve-rate: ## count the tasks that are solved with your model: OPENAI_BASE_URL, OLLAMA_HOST or MODEL_FILE=file.gguf (SHORT=1 FULL=1 HALF=a ONLY="go/ leap_year" EDITS=whole PLAN=1 ANEW=1; ROUND=name keeps the outcomes under a name, COMPARE=one,other holds two names against each other); docs/solve-rate.md has more
	@MODEL_FILE="$(MODEL_FILE)" PROVE=$(PROVE) COMPARE="$(COMPARE)" scripts/setup solve-rate
	$(BUILD_HARNESS) --bin solve_rate
	@MODEL_FILE="$(MODEL_FILE)" SHORT=$(SHORT) FULL=$(FULL) HALF=$(HALF) PLAN=$(PLAN) EDITS=$(EDITS) ANEW=$(ANEW) ROUND="$(ROUND)" COMPARE="$(COMPARE)" QUIXBUGS="$(QUIXBUGS)" HUMANEVAL="$(HUMANEVAL)" PROVE=$(PROVE) \
	  scripts/with-docker "$(TARGET_DIR)/debug/solve_rate" $(ONLY)

fresh: ## play demo and test on a bare Debian in a folder, with namespaces and a Docker engine of its own; as root (ONLY=demo)
	@scripts/fresh $(foreach command,$(ONLY),"make $(command)")

deny: ## check licences, bans and sources of all dependencies
	scripts/setup deny
	PATH="$(TARGET_DIR)/tools/bin:$$PATH" cargo deny --locked check licenses bans sources

advisories: ## check the dependencies against the database of known faults, which comes over the network
	scripts/setup deny
	PATH="$(TARGET_DIR)/tools/bin:$$PATH" cargo deny --locked check advisories

images: ## build the images of all five environments
	scripts/setup images

images-all: ## build all images that are given away: the service, the service with MCP runtimes, five environments; each with its SBOM and the digest of its contents
	@scripts/setup dist
	@scripts/setup system
	scripts/with-docker scripts/images

dist: ## build static programs in an archive, with checksum and SBOM (TARGET=x86_64-unknown-linux-musl or others that are installed)
	@TARGET_TRIPLE="$(TARGET)" scripts/setup dist
	TARGET="$(TARGET)" scripts/dist

deb: ## build a Debian package for this machine's release
	@scripts/setup dist
	scripts/package-debian

test-dist: ## try each way of installing on clean containers, and that two builds give the same bytes (SHORT=1: the Debian package and `make install`, of what `make test` built; PROFILE=release of that build)
	@SHORT=$(SHORT) PROFILE=$(PROFILE) scripts/setup test-dist
	SHORT=$(SHORT) PROFILE=$(PROFILE) scripts/with-docker scripts/test-dist

reference: ## write the reference of commands and configuration anew, from the program itself
	UPDATE_REFERENCE=1 cargo test --quiet --locked --test documents reference

site: ## build the site of the documents with mdBook, and check every link in it
	@scripts/setup site
	scripts/site

build: ## build the program and its static executor; with TARGET an executor for other processors (TARGET=aarch64-unknown-linux-musl)
	@if [ -n "$(TARGET)" ]; then TARGET_TRIPLE=$(TARGET) scripts/setup executor; else cargo build --locked && scripts/setup executor; fi

PREFIX ?= /usr/local
BIN = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share
# The build is never root's: sudo would hide the toolchain.
AS_ROOT = $(shell umask 022; mkdir -p "$(BIN)" 2>/dev/null && test -w "$(BIN)" || echo sudo)
INSTALLED = $(or $(PROGRAMS),$(TARGET_DIR)/release)

install: ## build a release and install both programs, manual pages and completions below PREFIX (/usr/local); PROGRAMS=folder takes those in there
ifndef PROGRAMS
	cargo build --release --locked --bin coding-agent
	cargo rustc --release --locked --bin coding-agent-executor -- -C target-feature=+crt-static
endif
	$(AS_ROOT) install -D "$(INSTALLED)/coding-agent" "$(BIN)/coding-agent"
	$(AS_ROOT) install -D "$(INSTALLED)/coding-agent-executor" "$(BIN)/coding-agent-executor"
	$(AS_ROOT) scripts/shipped "$(INSTALLED)/coding-agent" "$(SHARE)"

uninstall: ## remove what `make install` has put below PREFIX; configuration, state and logs stay
	$(AS_ROOT) rm -f "$(BIN)/coding-agent" "$(BIN)/coding-agent-executor"
	$(AS_ROOT) rm -f "$(SHARE)/man/man1/coding-agent.1" "$(SHARE)"/man/man1/coding-agent-*.1
	$(AS_ROOT) rm -f "$(SHARE)/bash-completion/completions/coding-agent" "$(SHARE)/zsh/site-functions/_coding-agent" \
	  "$(SHARE)/fish/vendor_completions.d/coding-agent.fish"
