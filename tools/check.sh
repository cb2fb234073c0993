#!/bin/sh
# What make check runs: all tests on memory and SQLite. They need only Go.
set -eu
cd "$(dirname "$0")/.."
. tools/settings.sh

# Simulators that run for minutes, and packages whose tests nearly all need PostgreSQL, Redis, Node,
# Python or curl. In other packages such tests skip (internal/testtier).
leftout="internal/chaos internal/crashpoint internal/calendarsim internal/store/postgres
	internal/pgtest internal/oidcinterop internal/peers internal/readmetest
	clients/typescript clients/python deploy"
# Thousands of power losses.
leftouttests='^TestCrash_Power'

packages=$(go list ./internal/server ./internal/store/sqlite ./internal/executor ./app ./... |
	awk -v skip="$(echo $leftout)" '
		BEGIN { n = split(skip, dirs) }
		{ for (i = 1; i <= n; i++) if ($0 ~ "/" dirs[i] "$") next; if (!seen[$0]++) print }')
export FERMATA_TEST=fast
code=0
eval "set -- $TESTFLAGS"
go test -exec "$plain" -ldflags=-w -vet=off -short -timeout 5m -skip "$leftouttests" "$@" $packages || code=$?
echo "left out, make test runs them:"
echo "  packages" $leftout "and the module bench"
echo "  tests that match $leftouttests, what -short shortens, and those that need more than Go"
echo "  the race detector"
exit $code
