#!/bin/sh
# What make nightly runs: the tests with large counts, also those of bench; the race detector for
# nearly the whole product; and an hour of random schedules, clock jumps and attacks.
set -eu
cd "$(dirname "$0")/.."
. tools/settings.sh
code=0

FERMATA_TEST=nightly tools/test.sh || code=1

phase "tests of bench"
tools/need.sh node langgraph
( cd bench && go test -exec "env -u GOGC -u GOMEMLIMIT $plain" -timeout 30m ./... ) || code=1

phase "the race detector"
if [ -n "$RACE" ]; then
	CGO_ENABLED=1 FERMATA_TEST=fast go test $RACE -exec "$plain" -ldflags=-w -vet=off -short \
		-timeout 40m -skip '^TestCrash_Power|PageSizeIsBoundedByBytes$' \
		. ./agent/... ./app/... ./channel/... ./client/... ./dialog/... ./gate/... ./graph/... \
		./internal/analytics/... ./internal/audit/... ./internal/broadcast ./internal/executor/... \
		./internal/serve ./internal/server/... ./internal/store/encrypted ./internal/web ./internal/web/webtest \
		./internal/policy/... ./policy/... ./provider/... ./internal/store/memory ./internal/store/sqlite ./tool/... || code=1
fi

phase "soak"
SOAKTIME=20m SOAKRUN='^TestProperty_(AnySchedule|ClockJumps|RandomAttack)$' \
	tools/soak.sh ./internal/crashpoint ./internal/executor ./internal/server || code=1
phase "done"
exit $code
