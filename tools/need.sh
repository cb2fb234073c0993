#!/bin/sh
# Installs what tests need and what is missing: tools/need.sh NAME...
#
#	cc         a C compiler, for the race detector
#	pg         PostgreSQL's programs, and libfaketime to set the clock of a server
#	redis      Redis' server program
#	node       Node, npm, curl, git, jq and openssl
#	python     Python for the tests of the Python client
#	chromium   Chromium, the fonts of the pictures in docs/img, and axe-core
#	langgraph-server, claude, oidc, langgraph   npm packages that tests run
#
# Packages come from apt, and tests start servers of their own, so no server is started. Without
# apt, the tests that miss a program fail and name it.
set -eu
cd "$(dirname "$0")/.."

packages=   # of apt
folders=    # of npm, relative to the root

missing() {
	! command -v "$1" >/dev/null
}

installed() { # installed FILE...: whether one of the files exists and can be executed
	for file in "$@"; do
		if [ -n "$file" ] && [ -e "$file" ]; then return 0; fi
	done
	return 1
}

for name in "$@"; do
	case $name in
	cc)
		cc=$(go env CC)
		if missing "${cc%% *}"; then packages="$packages gcc libc6-dev"; fi ;;
	pg)
		installed "$(command -v initdb || true)" /usr/lib/postgresql/*/bin/initdb ||
			packages="$packages postgresql"
		installed /usr/lib/*/faketime/libfaketime.so.1 /usr/lib/faketime/libfaketime.so.1 \
			/usr/local/lib/faketime/libfaketime.so.1 || packages="$packages faketime" ;;
	redis)
		# The server is in redis-tools under another name (store/redis/internal/redistest). The
		# package redis-server only adds the usual name and a service that would start.
		if missing redis-server && missing valkey-server && missing redis-check-rdb; then
			packages="$packages redis-tools"
		fi ;;
	node)
		for file in npm curl git jq openssl; do
			if missing $file; then packages="$packages $file"; fi
		done
		if missing node; then packages="$packages nodejs"; fi ;;
	python)
		if [ ! -x /usr/bin/python3 ] && missing python3; then packages="$packages python3"; fi ;;
	chromium)
		if missing chromium-headless-shell; then packages="$packages chromium-headless-shell"; fi
		if missing chromium && missing google-chrome; then packages="$packages chromium"; fi
		for font in inter jetbrains-mono; do
			[ -d /usr/share/doc/fonts-$font ] || packages="$packages fonts-$font"
		done
		folders="$folders internal/web/browsertest/axe" ;;
	langgraph-server) folders="$folders provider/langgraph/testdata/peer" ;;
	claude) folders="$folders internal/claudetest/cli" ;;
	oidc) folders="$folders internal/oidcinterop/provider" ;;
	langgraph) folders="$folders bench/langgraph" ;;
	*) echo "unknown: $name" >&2; exit 2 ;;
	esac
done

apt() {
	if [ "$(id -u)" = 0 ]; then root=; else root='sudo -n'; fi
	$root env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 "$@"
}

if [ -n "$packages" ] && missing apt-get; then
	echo "there is no apt here to install:$packages"
	case " $packages " in *" gcc "*) echo "or run without the race detector: make test RACE="; esac
elif [ -n "$packages" ]; then
	echo "installing for the tests:$packages"
	apt update
	case $packages in *postgresql*)
		# Debian's package makes and starts a server, unless this setting says no.
		apt install --no-install-recommends postgresql-common
		conf=/etc/postgresql-common/createcluster.conf
		no='create_main_cluster = false # make test'
		$root sed -i "s/^#create_main_cluster = true\$/$no/" $conf
		trap '$root sed -i "s/^$no\$/#create_main_cluster = true/" $conf' EXIT ;;
	esac
	apt install --no-install-recommends ca-certificates $packages
fi

# The folders are installed at the same time.
npm_ci() {
	cd "$1"
	if [ node_modules/.package-lock.json -nt package-lock.json ]; then return; fi
	echo "installing the npm packages of $1"
	log=$(mktemp)
	npm ci --ignore-scripts --no-audit --no-fund >"$log" 2>&1 || { cat "$log"; return 1; }
	rm "$log"
}
jobs=
for folder in $folders; do
	( npm_ci "$folder" ) &
	jobs="$jobs $!"
done
for job in $jobs; do wait "$job"; done
