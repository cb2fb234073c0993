.POSIX:
.PHONY: help demo demo-terminal check test lint bench fuzz soak mutate cover deadcode tidy screenshots clean need-go need-cc need-pg need-redis need-node need-python need-langgraph need-langgraph-server need-claude need-oidc need-chromium

# Empty to test without the race detector, which needs a C compiler. SQLite, which is C that was translated to Go, is left out: it keeps its memory
# where the detector does not look, and watching it takes two thirds of the time of all tests.
RACE ?= -race -gcflags=modernc.org/...=-race=false
# Further flags of go test, e.g. TESTFLAGS='-run TestI4 -v'.
TESTFLAGS ?=
# Arguments of the demo, e.g. DEMOFLAGS='--addr 127.0.0.1:9000'.
DEMOFLAGS ?=
# Arguments of the benchmark program.
BENCHFLAGS ?=
FUZZTIME ?= 20s
# Cases per property in a soak.
SOAKCHECKS ?= 5000
# Arguments of the mutation run, e.g. MUTATEFLAGS='-run I16' or -list.
MUTATEFLAGS ?=

# The modules that we write. tools/ only pins the linters.
MODULES = find . -name go.mod ! -path './tools/*' ! -path './.*' ! -path '*/testdata/*' ! -path '*/node_modules/*' | sed 's|/go.mod$$||' | sort

# Packages with goroutines that share data: make test runs their tests a second time, on memory and SQLite, with the race detector.
CONCURRENT = ./internal/server/... ./internal/executor/... . ./agent/... ./internal/analytics/... ./app/... ./internal/audit/... ./channel/... ./client/... ./dialog/... ./gate/... ./graph/... ./policy/... \
	./provider/... ./store/memory ./internal/store/encrypted ./store/sqlite ./tool/... ./internal/web ./internal/web/webtest ./internal/broadcast

# The longest tests begin first: otherwise a processor has nothing to do in the last minutes.
LONGEST = ./internal/chaos ./internal/peers ./internal/server ./store/sqlite ./internal/executor ./internal/crashpoint ./store/postgres ./cmd/fermata ./app ./deploy

# Packages that make check leaves out: simulators that run for minutes, and tests of which nearly all need PostgreSQL, Redis, Node, Python or curl.
# In other packages, tests that need one of those skip with FERMATA_TEST=fast (internal/testtier).
NOTCHECKED = internal/chaos internal/crashpoint internal/calendarsim store/postgres internal/pgtest \
	internal/oidcinterop internal/peers internal/readmetest clients/typescript clients/python deploy
# Tests that make check leaves out in the other packages, as a regular expression: thousands of power losses.
NOTCHECKEDTESTS = ^TestCrash_Power

# Tests that also the race detector leaves out: they move megabytes, which takes minutes with it, and share nothing.
NOTRACED = $(NOTCHECKEDTESTS)|PageSizeIsBoundedByBytes$$

# Prints the packages and times in the go test output that is in a file.
SLOWEST = awk '($$1 == "ok" || $$1 == "FAIL") && $$3 ~ /^[0-9.]+s$$/ { printf "%9s  %s\n", $$3, $$2 }'

# How programs are built where the race detector is not in them: as the Dockerfile builds them, and a newcomer without a C compiler does. Every test that
# builds a program does the same, so that nothing is compiled more than twice: once with the detector, and once without.
PLAIN = CGO_ENABLED=0 GOFLAGS="$$(go env GOFLAGS) -trimpath"

# For compilers and linters, which live for seconds: they spend a sixth and a third of their time on freeing memory that nobody else wants.
ROOMY = GOGC=400 GOMEMLIMIT=2GiB

# The path of a linter, built if need be. tools/ stands outside of go.work, and -modfile is refused inside of one; only the
# build runs without the workspace, so that the linter itself sees it.
TOOL = GOWORK=off $(PLAIN) go tool -modfile=tools/go.mod -n

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

demo: need-go ## a server with sample graphs on SQLite; prints its address, a sign-in link and a key; data goes to ./.fermata
	@mkdir -p bin && go build -o bin/fermata ./cmd/fermata
	@bin/fermata demo $(DEMOFLAGS)

# Leaving at the question with Ctrl-C is one of the things to try, so it is not an error here.
demo-terminal: need-go ## review a draft in the terminal; data goes to ./.demo
	@mkdir -p bin && go build -o bin/contentreview ./examples/contentreview
	@bin/contentreview; code=$$?; [ $$code -eq 130 ] || exit $$code

# What comes from npm takes some minutes the first time; the linters run in that time. It is make and not the variable for it: with that in a line, make -n
# would run all of it. Vetted by lint, with everything that go test would look at, and more; lint and tests are compiled in the same way, so that
# this happens once. What is tested gets the memory settings of those who run it.
test: need-go need-cc need-pg need-redis need-node need-python need-chromium ## what CI runs: lint, every test of every module, and again with the race detector where goroutines share data
	@make -s need-langgraph need-langgraph-server need-claude need-oidc & peers=$$!; \
	make -s lint || { kill $$peers; exit 1; }; \
	wait $$peers || exit 1; \
	out=$$(mktemp) && trap 'rm -f "$$out" "$$out.code"' EXIT || exit 1; \
	packages=$$($(MODULES) | grep -v '^./bench$$' | sed 's|$$|/...|'); export $(ROOMY); \
	{ code=0; { $(PLAIN) go test -exec "env -u GOGC -u GOMEMLIMIT" -ldflags=-w -vet=off -timeout 20m $(TESTFLAGS) $(LONGEST) $$packages && \
	CGO_ENABLED=0 go test -exec "env 'GOFLAGS=$$(go env GOFLAGS) -trimpath'" -ldflags=-w -vet=off -timeout 20m $(TESTFLAGS) ./bench/... && \
	if [ -n "$(RACE)" ]; then FERMATA_TEST=fast CGO_ENABLED=1 go test $(RACE) -exec "env -u GOGC -u GOMEMLIMIT CGO_ENABLED=0 'GOFLAGS=$$(go env GOFLAGS) -trimpath'" \
		-ldflags=-w -vet=off -short -timeout 40m -skip '$(NOTRACED)' $(TESTFLAGS) $(CONCURRENT); fi; } || code=$$?; echo $$code >$$out.code; } | tee $$out; \
	echo "the slowest packages:"; $(SLOWEST) $$out | sort -rn | head -n 10; \
	exit "$$(cat $$out.code)"

# Lint and tests are compiled in the same way, so that this happens once.
check: lint ## lint and all tests on memory and SQLite in a few minutes; needs only Go
	@export FERMATA_TEST=fast $(ROOMY) $(PLAIN); \
	packages=$$(go list ./... | awk -v skip='$(NOTCHECKED)' 'BEGIN { n = split(skip, dirs) } { for (i = 1; i <= n; i++) if ($$0 ~ "/" dirs[i] "$$") next; print }'); \
	code=0; go test -exec "env -u GOGC -u GOMEMLIMIT" -ldflags=-w -vet=off -short -timeout 5m -skip '$(NOTCHECKEDTESTS)' $(TESTFLAGS) ./internal/server ./store/sqlite ./internal/executor ./app $$packages || code=$$?; \
	echo "left out, make test runs them:"; \
	echo "  packages $(NOTCHECKED) and the module bench"; \
	echo "  tests that match $(NOTCHECKEDTESTS), what -short shortens, and those that need PostgreSQL, Redis or jq"; \
	echo "  the race detector"; \
	exit $$code

lint: need-go ## gofmt, go vet, staticcheck, and whether every switch over a sum type has all cases
	@files=$$(find . -name '*.go' ! -path './.*' ! -path '*/testdata/*' -exec "$$(go env GOROOT)/bin/gofmt" -l {} +) || exit 1; \
	if [ -n "$$files" ]; then echo "not formatted, run gofmt -w on:"; echo "$$files"; exit 1; fi
	@export $(ROOMY); staticcheck=$$($(TOOL) staticcheck) && sumtype=$$($(TOOL) go-check-sumtype) || exit 1; \
	export $(PLAIN); \
	packages=$$($(MODULES) | sed 's|$$|/...|'); \
	echo vet && go vet $$packages && echo staticcheck && "$$staticcheck" $$packages && echo "sum types" && "$$sumtype" $$packages

bench: need-go ## run the measurements in bench/
	cd bench && go run . $(BENCHFLAGS)

fuzz: need-go ## fuzz each target for FUZZTIME (20s)
	@find . -name '*_test.go' ! -path './.*' ! -path '*/testdata/*' -exec awk -F '[ (]' '/^func Fuzz/ { print FILENAME, $$2 }' {} + | sort | \
	while read -r file name; do \
		echo "fuzz $$name in $${file%/*}"; \
		( cd "$${file%/*}" && go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) . ) </dev/null || exit 1; \
	done

# Only a test binary that links rapid, directly or through a suite, knows its flag.
soak: need-go need-pg need-redis need-claude need-langgraph-server ## property and crash tests for hours, with SOAKCHECKS (5000) cases per property
	@rapid=$$(go list -test -f '{{$$pkg := .ImportPath}}{{range .Deps}}{{if eq . "pgregory.net/rapid"}}{{$$pkg}}{{"\n"}}{{end}}{{end}}' ./... | \
		sed -n 's/\.test$$//p'); \
	others=$$(go list ./... | grep -vxF "$$rapid"); \
	set -e; export FERMATA_SOAK=1; \
	if [ -n "$$others" ]; then go test -count=1 -timeout 2h -run 'Property|Crash|ManyRequests' $(TESTFLAGS) $$others; fi; \
	if [ -n "$$rapid" ]; then go test -count=1 -timeout 2h -run 'Property|Crash|ManyRequests' $(TESTFLAGS) $$rapid -rapid.checks=$(SOAKCHECKS); fi

mutate: need-go need-pg ## switch off one safeguard at a time; fails if a test does not notice
	@go run ./internal/mutationtest $(MUTATEFLAGS)

cover: need-go need-pg need-redis ## test coverage of the module, in cover.out
	go test -timeout 20m -coverpkg=./... -coverprofile=cover.out ./...
	@go tool cover -func=cover.out | tail -n 1

deadcode: need-go ## functions that neither a program nor a test reaches
	@deadcode=$$($(TOOL) deadcode) && "$$deadcode" -test ./...

tidy: need-go ## go mod tidy in each module; fails if that changed anything
	@changed=0; \
	for dir in $$($(MODULES)) tools; do \
		( cd "$$dir" && GOWORK=off go mod tidy -diff ) || { changed=1; ( cd "$$dir" && GOWORK=off go mod tidy ) || exit 1; echo "tidied $$dir"; }; \
	done; \
	exit $$changed

screenshots: need-go need-chromium ## pictures of the main pages of the demo, in docs/img
	@mkdir -p bin docs/img && go build -o bin/fermata ./cmd/fermata && \
	FERMATA_SCREENSHOTS=$$PWD/docs/img go test -count=1 -run Screenshots ./internal/web/browsertest

clean: ## remove what the other targets leave behind, also the data of the demo
	rm -rf .demo .fermata bin cover.out
	find . -name '*.test' -type f ! -path './.*' -exec rm -f {} +
	find . -name '*.prof' -type f ! -path './.*' -exec rm -f {} +

need-go:
	@command -v go >/dev/null || { echo "Go is missing: install the version that go.mod names, or a newer one"; exit 1; }

need-cc: need-go
	@[ -n "$(RACE)" ] || exit 0; \
	cc=$$(go env CC); cc=$${cc%% *}; \
	if command -v "$$cc" >/dev/null; then exit 0; fi; \
	if command -v apt-get >/dev/null; then \
		echo "installing a C compiler for the race detector"; \
		if [ "$$(id -u)" = 0 ]; then root=; else root='sudo -n'; fi; \
		$$root apt-get update -q && $$root apt-get install -q -y --no-install-recommends gcc libc6-dev; \
	fi; \
	if command -v "$$cc" >/dev/null; then exit 0; fi; \
	echo "the race detector needs a C compiler ($$cc): install one, or run: make test RACE="; exit 1

# The tests start servers of their own (internal/pgtest), so only the programs are needed, and the library by which a server's clock is set. Debian's package would make and
# start a server as well; the line in its settings is there while it is installed.
need-pg:
	@for file in /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 /usr/local/lib/faketime/libfaketime.so.1; do [ ! -e "$$file" ] || clock=found; done; \
	for file in "$$(command -v initdb)" /usr/lib/postgresql/*/bin/initdb; do if [ -x "$$file" ] && [ -n "$$clock" ]; then exit 0; fi; done; \
	command -v apt-get >/dev/null || exit 0; \
	echo "installing PostgreSQL for the tests; no server is started"; \
	if [ "$$(id -u)" = 0 ]; then root=; else root='sudo -n'; fi; \
	install="$$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends"; \
	conf=/etc/postgresql-common/createcluster.conf; \
	$$root apt-get update -q && $$install postgresql-common && \
	$$root sed -i 's/^#create_main_cluster = true$$/create_main_cluster = false # make test/' $$conf && \
	$$install postgresql faketime; code=$$?; \
	[ ! -e $$conf ] || $$root sed -i 's/^create_main_cluster = false # make test$$/#create_main_cluster = true/' $$conf; \
	exit $$code

# The server's program is in redis-tools, under another name (store/redis/internal/redistest knows it). The package redis-server only adds the
# usual name and a service that would start, now and with the machine.
need-redis:
	@for file in redis-server valkey-server redis-check-rdb; do if command -v $$file >/dev/null; then exit 0; fi; done; \
	command -v apt-get >/dev/null || exit 0; \
	echo "installing Redis for the tests; no server is started"; \
	if [ "$$(id -u)" = 0 ]; then root=; else root='sudo -n'; fi; \
	$$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends redis-tools

# The TypeScript client is tested from Node, the README by a newcomer who has curl and git, the audit log by hand with jq and openssl.
need-node:
	@missing=; for file in node npm curl git jq openssl; do command -v $$file >/dev/null || missing="$$missing $$file"; done; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	command -v apt-get >/dev/null || { echo "the tests need$$missing: install them"; exit 1; }; \
	echo "installing Node, npm, curl, git, jq and openssl for the tests"; \
	if [ "$$(id -u)" = 0 ]; then root=; else root='sudo -n'; fi; \
	$$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends nodejs npm curl git jq openssl ca-certificates

# The Python client is tested with Debian's Python, which has no further packages.
need-python:
	@if [ -x /usr/bin/python3 ] || command -v python3 >/dev/null; then exit 0; fi; \
	command -v apt-get >/dev/null || { echo "the tests need python3: install it"; exit 1; }; \
	echo "installing Python for the tests of the Python client"; \
	if [ "$$(id -u)" = 0 ]; then root=; else root='sudo -n'; fi; \
	$$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends python3

# bench compares with LangGraph JS. Its SQLite driver is compiled where no binary of it can be had, which takes a minute or two, once.
need-langgraph: need-node
	@cd bench/langgraph || exit 1; \
	if [ -e node_modules/.package-lock.json ] && [ ! package-lock.json -nt node_modules/.package-lock.json ]; then exit 0; fi; \
	echo "installing LangGraph for the tests of bench"; \
	npm ci --no-audit --no-fund

# provider/langgraph is tested with LangGraph's development server.
need-langgraph-server: need-node
	@cd provider/langgraph/testdata/peer || exit 1; \
	if [ -e node_modules/.package-lock.json ] && [ ! package-lock.json -nt node_modules/.package-lock.json ]; then exit 0; fi; \
	echo "installing LangGraph's server for the tests of provider/langgraph"; \
	npm ci --ignore-scripts --no-audit --no-fund

# provider/claude drives the CLI. It is one executable of 350 MB, without dependencies.
need-claude: need-node
	@cd internal/claudetest/cli || exit 1; \
	if [ -e node_modules/.package-lock.json ] && [ ! package-lock.json -nt node_modules/.package-lock.json ]; then exit 0; fi; \
	echo "installing the Claude CLI for the tests of provider/claude"; \
	npm ci --ignore-scripts --no-audit --no-fund

# People sign in to the tests of internal/oidcinterop with node-oidc-provider.
need-oidc: need-node
	@cd internal/oidcinterop/provider || exit 1; \
	if [ -e node_modules/.package-lock.json ] && [ ! package-lock.json -nt node_modules/.package-lock.json ]; then exit 0; fi; \
	echo "installing node-oidc-provider for the tests of signing in"; \
	npm ci --ignore-scripts --no-audit --no-fund

# The pages are tested in Chromium, with the fonts of the pictures in docs/img, and with the accessibility checker axe-core.
need-chromium: need-node
	@missing=; command -v chromium-headless-shell >/dev/null || missing=chromium-headless-shell; \
	command -v chromium >/dev/null || command -v google-chrome >/dev/null || missing="$$missing chromium"; \
	for font in inter jetbrains-mono; do [ -d /usr/share/doc/fonts-$$font ] || missing="$$missing fonts-$$font"; done; \
	if [ -n "$$missing" ] && command -v apt-get >/dev/null; then \
		echo "installing $$missing for the tests of the pages"; \
		if [ "$$(id -u)" = 0 ]; then root=; else root='sudo -n'; fi; \
		$$root apt-get update -q && $$root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $$missing || exit 1; \
	fi; \
	cd internal/web/browsertest/axe || exit 1; \
	if [ -e node_modules/.package-lock.json ] && [ ! package-lock.json -nt node_modules/.package-lock.json ]; then exit 0; fi; \
	npm ci --ignore-scripts --no-audit --no-fund
