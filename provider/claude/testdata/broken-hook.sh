#!/bin/sh
# Starts the CLI in REAL_CLAUDE with a hook that does not answer.
for argument; do
	case $last in --settings) sed -i 's|127.0.0.1:[0-9]*/hook|127.0.0.1:1/hook|' "$argument" ;; esac
	last=$argument
done
exec "$REAL_CLAUDE" "$@"
