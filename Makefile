# Two commands: `make reproduce` measures everything of the quick preset and writes the report;
# `make test` runs every test. Both install what the system lacks first.

CARGO ?= cargo
PRESET ?= quick

.PHONY: reproduce test check setup

reproduce: setup
	$(CARGO) run --release --locked --quiet -- reproduce --preset $(PRESET)

test: setup
	$(CARGO) test --release --locked

# Formatting, lints and documentation, as CI holds them.
check: setup
	$(CARGO) fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --locked --no-deps

# OpenBLAS's library and headers, and pkg-config to find them; a C compiler for zstd.
setup:
	@if ! pkg-config --exists openblas 2>/dev/null || ! command -v cc >/dev/null; then \
		if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
		echo "installing libopenblas-dev, pkg-config and a C compiler"; \
		$$sudo apt-get update -qq && \
		$$sudo apt-get install -y -qq --no-install-recommends libopenblas-dev pkg-config gcc libc6-dev; \
	fi
	@command -v $(CARGO) >/dev/null || { echo "no cargo: install Rust from https://rustup.rs"; exit 1; }
