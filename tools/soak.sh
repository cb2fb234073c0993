#!/bin/sh
# Property and crash tests for hours: tools/soak.sh [PACKAGE...]
#
# SOAKCHECKS is the number of cases per property, SOAKRUN selects the tests, and SOAKTIME limits
# each package. Tests that run as long as they have time end a minute before.
set -eu
cd "$(dirname "$0")/.."
. tools/settings.sh
export FERMATA_TEST=soak
packages=${*:-./...}

# Only a test program that links rapid, directly or through a suite, knows its flag.
rapid=$(go list -test -f '{{$pkg := .ImportPath}}{{range .Deps}}{{if eq . "pgregory.net/rapid"}}{{$pkg}}
{{end}}{{end}}' $packages | sed -n 's/\.test$//p')
others=$(go list $packages | grep -vxF "$rapid" || true)
eval "set -- -count=1 -timeout ${SOAKTIME:-2h} -run '${SOAKRUN:-Property|Crash|ManyRequests}' $TESTFLAGS"
if [ -n "$others" ]; then go test "$@" $others; fi
if [ -n "$rapid" ]; then go test "$@" $rapid -rapid.checks="${SOAKCHECKS:-5000}"; fi
