#!/bin/sh
# The linters: gofmt, go vet, staticcheck, and whether every switch over a sum type has all cases.
# With the argument vet only the first two, which also compile all packages; with the argument
# check only the others.
set -eu
cd "$(dirname "$0")/.."
. tools/settings.sh
packages=$(modules | sed 's|$|/...|')

if [ "${1-vet}" = vet ]; then
	files=$(find . -name '*.go' ! -path './.*' ! -path '*/testdata/*' \
		-exec "$(go env GOROOT)/bin/gofmt" -l {} +)
	if [ -n "$files" ]; then
		echo "not formatted, run gofmt -w on:"
		echo "$files"
		exit 1
	fi
	echo vet
	go vet $packages
fi
if [ "${1-check}" = check ]; then
	staticcheck=$(tool staticcheck)
	sumtype=$(tool go-check-sumtype)
	echo staticcheck
	"$staticcheck" $packages
	echo "sum types"
	"$sumtype" $packages
fi
