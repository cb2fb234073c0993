#!/bin/sh
# What make test runs: the linters, and every test of every module except bench. Each package runs once:
# with the race detector if its goroutines share data, and without it otherwise. Only internal/executor
# runs twice: on all stores without the race detector, and in memory with it.
#
#	install ───────────┐
#	gofmt, vet ────────┴── tests without and with the race detector, on one PostgreSQL ── summary
#	                   └── staticcheck, sum types
#
# FERMATA_TEST selects the tier (internal/testtier).
set -eu
cd "$(dirname "$0")/.."
. tools/settings.sh

# Packages with goroutines that share data.
raced="./internal/executor . ./agent/... ./channel/slack ./dialog/... ./graph/... ./internal/broadcast
	./internal/dialog/conversation ./internal/executor/... ./internal/server/admission
	./internal/server/presence ./internal/server/stream ./internal/store/memory"
# The longest tests begin first. Otherwise a processor has nothing to do in the last minutes.
longest="./internal/chaos ./internal/peers ./internal/web/browsertest ./app ./internal/store/postgres
	./internal/server ./internal/store/sqlite ./internal/executor ./internal/crashpoint ./provider/claude
	./deploy"

[ -n "$RACE" ] || raced=
work=$(mktemp -d)
chmod 755 "$work"
memory=
trap 'rm -rf "$work" $memory' EXIT
trap 'exit 1' HUP INT TERM

phase "installation, beside gofmt and vet"
tools/need.sh ${RACE:+cc} pg redis node python chromium langgraph-server claude oidc >"$work/need" 2>&1 &
need=$!
tools/lint.sh vet || { kill $need; exit 1; }
wait $need || { cat "$work/need"; exit 1; }
cat "$work/need"

phase "staticcheck and sum types, beside the tests"
tools/lint.sh check >"$work/lint" 2>&1 &
lint=$!
go build -ldflags=-w -o "$work" ./cmd/fermata ./internal/pgtest/pgserver
export FERMATA_BIN="$work/fermata"

# Temporary files are in memory if there is room and programs can run there. kill -9 loses no file
# in either place, and power losses are simulated (internal/powerloss). The nightly run is on disk.
room=$(df -Pk /dev/shm 2>/dev/null | awk 'END { print int($4 / 1048576) }')
if [ "${FERMATA_TEST-}" != nightly ] && [ "${room:-0}" -ge 6 ]; then
	memory=$(mktemp -d /dev/shm/fermata-test-XXXXXX)
	chmod 1777 "$memory" # the user postgres has files in it
	printf '#!/bin/sh\n' >"$memory/program"
	chmod +x "$memory/program"
	if "$memory/program"; then export GOTMPDIR="$work" TMPDIR="$memory"; fi
fi

go list ${raced:-unsafe} >"$work/raced"
go list $longest $(modules | grep -v '^./bench$' | sed 's|$|/...|') | awk -v raced="$work/raced" '
	BEGIN { while ((getline name <raced) > 0) if (name !~ "/internal/executor$") done[name] = 1 }
	!done[$0]++' >"$work/others"

# One PostgreSQL serves all packages.
"$work/pgserver" "$work/postgres" &
postgres=$!
trap 'kill $postgres; wait $postgres; rm -rf "$work" $memory' EXIT
while [ ! -s "$work/postgres" ]; do
	kill -0 $postgres
	sleep 0.1
done
FERMATA_TEST_POSTGRES=$(cat "$work/postgres")
export FERMATA_TEST_POSTGRES

go_test() { # go_test FILE FLAG...: tests the packages that a file names; the output is in FILE.out
	list=$1
	shift
	eval "set -- \"\$@\" $TESTFLAGS"
	go test -exec "$plain" -ldflags=-w -vet=off -timeout 30m "$@" $(cat "$list") >"$list.out" 2>&1 ||
		touch "$list.failed"
}

# The run with the race detector is beside the other one, because many tests wait for processes.
detector=
if [ -n "$raced" ]; then
	CGO_ENABLED=1 go_test "$work/raced" $RACE -p 1 &
	detector=$!
fi
touch "$work/others.out"
tail -f "$work/others.out" &
tail=$!
go_test "$work/others"
sleep 1
kill $tail
phase "all but the race detector is done"
wait $detector || true
if [ -n "$raced" ]; then cat "$work/raced.out"; fi
wait $lint || touch "$work/lint.failed"
cat "$work/lint"
phase "done"
cat "$work"/*.out >"$work/all"
slowest "$work/all"
for part in others raced lint; do
	if [ -e "$work/$part.failed" ]; then
		echo "FAILED: $part"
		touch "$work/failed"
	fi
done
[ ! -e "$work/failed" ]
