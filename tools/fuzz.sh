#!/bin/sh
# Fuzzes each target for FUZZTIME.
set -eu
cd "$(dirname "$0")/.."
find . -name '*_test.go' ! -path './.*' ! -path '*/testdata/*' \
	-exec awk -F '[ (]' '/^func Fuzz/ { print FILENAME, $2 }' {} + | sort |
while read -r file name; do
	echo "fuzz $name in ${file%/*}"
	( cd "${file%/*}" && go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZTIME:-20s}" . ) </dev/null
done
