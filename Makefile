# What is done with this tree. `make` alone says what there is.

PREFIX ?= /usr/local
DESTDIR ?=
# Where `make install` puts the systemd unit; empty for nowhere.
UNITDIR ?= $(PREFIX)/lib/systemd/system
# Set on the command line to pass more to every build, e.g. SWIFT_FLAGS="--sanitize thread".
SWIFT_FLAGS ?=
# lint and test share one build: warnings are errors in both, or everything would be compiled twice.
DEBUG_BUILD = swift build --build-tests -Xswiftc -warnings-as-errors $(SWIFT_FLAGS)

.DEFAULT_GOAL := help
.PHONY: help deps demo build test test-systemd soak lint fuzz sanitize bench regress deb install install-files clean

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /\1\t/' | expand -t 14

deps: ## install the packages that building and testing need (apt-get; only what is missing)
	@scripts/deps test

build: ## build the release binary, .build/release/nudged
	@scripts/deps build
	swift build -c release --static-swift-stdlib --product nudged $(SWIFT_FLAGS)

test: deps ## run all tests
	Tests/Schema/run
	$(DEBUG_BUILD)
	swift test --skip-build --disable-xctest -Xswiftc -warnings-as-errors $(SWIFT_FLAGS)

test-systemd: deb ## install the package in a Debian container and see the service live there (root, minutes)
	@scripts/deps systemd
	swift build -c release --static-swift-stdlib --product apns-simulator $(SWIFT_FLAGS)
	scripts/test-systemd

soak: deps ## kill the worker a hundred times under faults and check that all adds up (minutes)
	scripts/soak

lint: deps ## check format, imports and warnings
	swift format lint --strict --recursive Sources Tests Fuzz Package.swift
	scripts/check-imports
	$(DEBUG_BUILD)

# Seconds for each of the fuzzers.
FUZZ_TIME ?= 20
# What they find interesting is kept from run to run.
FUZZ_FOUND = .build/fuzz-corpus
FUZZ_BUILD = NUDGED_FUZZ=1 swift build -c release --scratch-path .build/fuzz --product nudged-fuzz \
	-Xswiftc -use-ld=lld $(addprefix -Xswiftc ,-sanitize=fuzzer -sanitize=address -sanitize-coverage=edge \
	-Xllvm -sanitizer-coverage-inline-8bit-counters -Xllvm -sanitizer-coverage-pc-table)

fuzz: deps ## feed what comes from outside with nonsense, FUZZ_TIME=20 seconds for each part
	$(FUZZ_BUILD)
	for part in session answer payload registration; do \
		mkdir -p $(FUZZ_FOUND)/$$part && \
		ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=8 SWIFT_BACKTRACE=enable=no \
		.build/fuzz/release/nudged-fuzz $$part -max_total_time=$(FUZZ_TIME) -max_len=4096 -timeout=20 \
			-verbosity=0 -print_final_stats=1 -artifact_prefix=$(FUZZ_FOUND)/$$part- \
			$(FUZZ_FOUND)/$$part Fuzz/corpus/$$part || exit; \
	done

# The test runner's own leaks are not ours; faketime and preloaded libraries do not go with a sanitizer, nor do
# bounds on memory and time, nor valgrind.
SANITIZED_TESTS = --skip-build --disable-xctest --skip \
	'silentForAMinute|longPauses|ClockTests|DoctorTests/clock|ActivityOrderTests/timestamps|HistoryTests|SoakTests|BenchTests'

sanitize: deps ## run the tests under the thread and the address sanitizer
	for sanitizer in thread address; do \
		swift build --build-tests --scratch-path .build/$$sanitizer --sanitize $$sanitizer && \
		ASAN_OPTIONS=detect_leaks=0:quarantine_size_mb=1 TSAN_OPTIONS=halt_on_error=1 \
		swift test $(SANITIZED_TESTS) --scratch-path .build/$$sanitizer --sanitize $$sanitizer || exit; \
	done

demo: ## see it work: installs what is missing, builds, and runs the main job against a local APNs
	@scripts/deps demo
	swift build -c release --static-swift-stdlib --product apns-simulator $(SWIFT_FLAGS)
	swift build -c release --static-swift-stdlib --product nudged $(SWIFT_FLAGS)
	@scripts/demo .build/release

# What `bench` measures and how: BENCH_FLAGS="--quick", "--only backlog,idle", "--list", "--help".
BENCH_FLAGS ?=

bench: deps ## measure all that there are figures for, in one table (BENCH_FLAGS=--quick: in about a minute)
	@scripts/deps regress
	swift build -c release --static-swift-stdlib $(SWIFT_FLAGS)
	.build/release/nudged-bench $(BENCH_FLAGS)

regress: ## count instructions and allocations for each nudge; fail when they have grown by more than a tenth
	@scripts/deps regress
	swift build -c release --static-swift-stdlib $(SWIFT_FLAGS)
	.build/release/nudged-bench --only counts --check

deb: build ## build the Debian package, .build/nudged_..._....deb
	@scripts/deps deb
	@scripts/deb

install: build install-files ## install binary, man page, unit and queries below PREFIX (/usr/local)

# Settings that are there are somebody's; the unit calls the program where it is.
install-files:
	install -d $(addprefix $(DESTDIR)$(PREFIX)/share/nudged/,audit migrations metrics)
	install -D -m 755 .build/release/nudged $(DESTDIR)$(PREFIX)/bin/nudged
	install -D -m 644 deploy/nudged.8 $(DESTDIR)$(PREFIX)/share/man/man8/nudged.8
	install -m 644 deploy/audit/*.sql $(DESTDIR)$(PREFIX)/share/nudged/audit/
	install -m 644 migrations/*.sql $(DESTDIR)$(PREFIX)/share/nudged/migrations/
	install -m 644 deploy/metrics/nudged-metrics.* deploy/metrics/alerts.yml \
		$(DESTDIR)$(PREFIX)/share/nudged/metrics/
	test -e $(DESTDIR)/etc/nudged/nudged.env || \
		install -D -m 644 deploy/nudged.env $(DESTDIR)/etc/nudged/nudged.env
ifneq ($(UNITDIR),)
	install -D -m 644 deploy/nudged.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/nudged.conf
	install -d $(DESTDIR)$(UNITDIR)
	sed 's,/usr/bin/nudged,$(PREFIX)/bin/nudged,' deploy/nudged.service >$(DESTDIR)$(UNITDIR)/nudged.service
endif

clean: ## remove what builds leave
	rm -rf .build
