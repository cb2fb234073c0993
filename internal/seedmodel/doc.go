// Package seedmodel holds the protocol that ours replaces, as a table, with tests that refute it, and nothing else.
//
// The first design of Fermata kept one row per run, with a lock that is good for 30 seconds, the last resume id and its
// outcome. A resume looks whether its id is the last one, takes the lock, has the provider go on, and frees the lock:
//
//	received ──▶ checked ──▶ locked ──▶ loaded ──▶ acted ──▶ saved ──▶ released ──▶ answered
//	    └▶ answered   └▶ conflicted (409)
//
// It looks right, and it is not. Each test here is named for one flaw and has the shortest story of it found by exploring every order
// of events; run it with -v to read the story. Most need no fault at all. The same promises, and more, are explored for
// the protocol that took its place in store/memory, on the very code that runs.
//
// The provider is as kind as the design lets it be: it saves its state at once with each gate, and nobody but the lock holds
// it back. What is no matter of order is not here: that now() is the start of a transaction, and that the cached outcome has no
// owner and lies there in plain text.
package seedmodel
