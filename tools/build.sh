#!/bin/sh
# Builds a program into bin/, and shows progress if that takes time: tools/build.sh PACKAGE
#
# The flags are those of the tests, so that both share the compiled packages.
set -eu
cd "$(dirname "$0")/.."
. tools/settings.sh
mkdir -p bin
packages=$(mktemp)
trap 'rm -f "$packages"' EXIT

# progress TEXT COUNT shows a line: on a terminal in place of the last one, and otherwise each
# hundredth.
progress() {
	if [ -t 2 ]; then
		printf '\r%s\033[K' "$1" >&2
	elif [ $(($2 % 100)) = 1 ]; then
		echo "$1" >&2
	fi
}

# go list downloads modules, and go build -v names each package that it compiles.
{
	go list -deps "$1" 2>&1 >"$packages" &&
		go build -v -ldflags='-s -w' -o bin/ "$1" 2>&1 || echo "exit $?"
} | {
	code=0
	compiled=0
	loaded=0
	while read -r line; do
		case $line in
		"exit "*) code=${line#exit } ;;
		"go: downloading "*)
			loaded=$((loaded + 1))
			progress "downloading module $loaded" $loaded ;;
		*[!A-Za-z0-9._~/+-]*) printf '\n%s\n' "$line" >&2 ;; # an error
		*)
			if [ $compiled = 0 ]; then
				all=$(wc -l <"$packages")
				printf '\n%s\n' "building $1: two to three minutes on two cores, and seconds the next time" >&2
			fi
			compiled=$((compiled + 1))
			progress "compiling package $compiled of $all" $compiled ;;
		esac
	done
	if [ -t 2 ] && [ $((compiled + loaded)) -gt 0 ]; then echo >&2; fi
	exit "$code"
}
