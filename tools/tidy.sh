#!/bin/sh
# go mod tidy in each module. Fails if that changed anything.
set -eu
cd "$(dirname "$0")/.."
. tools/settings.sh
changed=0
export GOWORK=off
for dir in $(modules) tools; do
	if ( cd "$dir" && go mod tidy -diff ); then continue; fi
	changed=1
	( cd "$dir" && go mod tidy )
	echo "tidied $dir"
done
exit $changed
