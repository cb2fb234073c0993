// Package compat checks that the current program reads the data and answers the requests of an
// earlier one.
//
// The directory testdata/base was written by the program at commit 82c913e:
//
//	fermata.db              SQLite database with at least one of everything that is stored
//	test-seal.key           key file of the database; test data, never use it elsewhere
//	test-audit.key          key that signs the audit log; test data
//	test-principals.json    API keys and a session cookie of the database; test data
//	exchanges/stored/       HTTP requests and responses, in order, on a copy of fermata.db
//
// The tests send the recorded requests to the current server and compare the responses. Names that
// change on purpose are listed in testdata/renames.tsv, and members that are added, removed or have
// another value on purpose in testdata/changes.tsv. Human-readable texts are not compared.
// Any other difference fails the test.
//
// Values that differ from run to run are placeholders, e.g. "<id:1>" or "<time:+61s>" (seconds
// after the start of the recording). The same placeholder stands for the same value in all
// exchanges.
//
// The tests run in a [testing/synctest] bubble, so that the clock starts at the same time as in the
// recording and deadlines never depend on the date.
//
// The set "base" stays as it is. To record another set with the current program:
//
//	go test ./internal/compat -run TestRecord -record NAME
//
// The requests are in scenario_test.go, in the names of the set "base"; renames.tsv translates
// them. To write a set like "base" again, do this at the commit that added this package, where the
// program differs from 82c913e in Go identifiers only.
package compat
