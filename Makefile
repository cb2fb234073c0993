.POSIX:
.PHONY: help demo demo-terminal check test nightly lint bench fuzz soak mutate cover deadcode tidy screenshots clean
.PHONY: need-go need-cc need-pg need-redis need-node need-python need-chromium
.PHONY: need-langgraph need-langgraph-server need-claude need-oidc

# Settings, which the scripts in tools/ read as well:
#   RACE=                               no race detector, which needs a C compiler
#   TESTFLAGS='-run TestI4 -v'          further flags of go test
#   DEMOFLAGS='--addr 127.0.0.1:9000'   arguments of the demo
#   BENCHFLAGS, MUTATEFLAGS='-run I16'  arguments of the benchmarks and of the mutation run
#   FUZZTIME=20s                        how long each target is fuzzed
#   SOAKCHECKS=5000, SOAKTIME=2h        cases per property and time per package in a soak
FUZZTIME ?= 20s

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

demo: need-go ## a server with sample graphs; prints its address, a sign-in link and a key; data goes to ./.fermata
	@tools/build.sh ./cmd/fermata
	@bin/fermata demo $(DEMOFLAGS)

# Ctrl-C at the question is one of the things to try, so it is not an error here.
demo-terminal: need-go ## review a draft in the terminal; data goes to ./.demo
	@tools/build.sh ./examples/contentreview
	@bin/contentreview; code=$$?; [ $$code -eq 130 ] || exit $$code

check: need-go lint ## lint and all tests on memory and SQLite in a few minutes; needs only Go
	@tools/check.sh

test: need-go ## what CI runs: lint and every test, with the race detector where goroutines share data
	@tools/test.sh

nightly: need-go ## make test with large counts, the race detector nearly everywhere, bench, and an hour of soak
	@tools/nightly.sh

soak: need-go need-pg need-redis need-claude need-langgraph-server ## property and crash tests for hours
	@tools/soak.sh

lint: need-go ## gofmt, go vet, staticcheck, and whether every switch over a sum type has all cases
	@tools/lint.sh

fuzz: need-go ## fuzz each target for FUZZTIME
	@FUZZTIME=$(FUZZTIME) tools/fuzz.sh

bench: need-go ## run the measurements in bench/
	cd bench && go run . $(BENCHFLAGS)

mutate: need-go need-pg ## switch off one safeguard at a time; fails if a test does not notice
	@go run ./internal/mutationtest $(MUTATEFLAGS)

cover: need-go need-pg need-redis ## test coverage of the module, in cover.out
	go test -timeout 20m -coverpkg=./... -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -n 1

deadcode: need-go ## functions that neither a program nor a test reaches
	@. tools/settings.sh && "$$(tool deadcode)" -test ./...

tidy: need-go ## go mod tidy in each module; fails if that changed anything
	@tools/tidy.sh

screenshots: need-go need-chromium ## pictures of the main pages of the demo, in docs/img
	@tools/build.sh ./cmd/fermata && mkdir -p docs/img && \
	FERMATA_SCREENSHOTS=$$PWD/docs/img go test -count=1 -run Screenshots ./internal/web/browsertest

clean: ## remove what the other targets leave behind, also the data of the demo
	rm -rf .demo .fermata bin cover.out
	find . -name '*.test' -type f ! -path './.*' -exec rm -f {} +
	find . -name '*.prof' -type f ! -path './.*' -exec rm -f {} +

need-go:
	@command -v go >/dev/null || { echo "Go is missing: install the version that go.mod names, or a newer one"; exit 1; }

# Programs and npm packages that tests need; tools/need.sh installs what is missing.
need-cc need-pg need-redis need-node need-python:
	@tools/need.sh $(@:need-%=%)

need-chromium need-langgraph need-langgraph-server need-claude need-oidc: need-node
	@tools/need.sh $(@:need-%=%)
