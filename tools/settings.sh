# Settings that the scripts in tools/ share. Source it in the root of the repository:
#
#	. tools/settings.sh

# Programs are built like this where the race detector is not in them, by tests too. All compiled
# packages are then shared: the Dockerfile and a newcomer without a C compiler build the same way.
CGO_ENABLED=0
GOFLAGS="$(go env GOFLAGS) -trimpath"
export CGO_ENABLED GOFLAGS

# Compilers, linters and tests live for seconds and have memory: they collect garbage less often.
# $plain runs a test program without the C compiler that the race detector needed to build it.
GOGC=400
GOMEMLIMIT=2GiB
export GOGC GOMEMLIMIT
plain="env CGO_ENABLED=0"

# The race detector needs a C compiler; with RACE= nothing uses it. SQLite is excluded: it is C
# translated to Go, keeps its memory where the detector does not look, and takes minutes with it.
RACE=${RACE--race -gcflags=modernc.org/...=-race=false}

# Further flags of go test, for example TESTFLAGS='-run TestI4 -v'.
TESTFLAGS=${TESTFLAGS-}

# modules lists the directories of the modules that we write. tools/ only pins the linters.
modules() {
	find . -name go.mod ! -path './tools/*' ! -path './.*' ! -path '*/testdata/*' \
		! -path '*/node_modules/*' | sed 's|/go.mod$||' | sort
}

# tool NAME builds a linter if need be and prints its path. tools/ is outside of the workspace.
tool() {
	GOWORK=off go tool -modfile=tools/go.mod -n "$1"
}

# slowest FILE prints the ten slowest packages of the go test output in a file.
slowest() {
	echo "the slowest packages:"
	awk '($1 == "ok" || $1 == "FAIL") && $3 ~ /^[0-9.]+s$/ { printf "%9s  %s\n", $3, $2 }' "$1" |
		sort -rn | head -n 10
}

# phase TEXT prints what begins, and the seconds since the first call.
phase() {
	: "${began:=$(date +%s)}"
	echo "$(($(date +%s) - began)) s: $1"
}
