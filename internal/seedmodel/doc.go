// Package seedmodel contains the protocol that was replaced, as a table, with tests that refute it.
//
// The first design of Fermata kept one row per run, with a lock that is valid for 30 seconds, the
// last resume id and its outcome. A resume checks whether its id is the last one, takes the lock,
// lets the provider continue, and frees the lock:
//
//	received ──▶ checked ──▶ locked ──▶ loaded ──▶ acted ──▶ saved ──▶ released ──▶ answered
//	    └▶ answered   └▶ conflicted (409)
//
// It looks right but is not. Each test is named after one flaw and has the shortest trace that
// exploring every order of events found; run it with -v to print the trace. Most need no fault at
// all. The same invariants, and more, are explored for the current protocol in store/memory, on the
// production code.
//
// The provider is as simple as the design allows: it saves its state at once with each gate, and
// only the lock protects it. Flaws that do not depend on the order of events are not covered: that
// now() is the start of a transaction, and that the cached outcome has no owner and is stored in
// plain text.
package seedmodel
