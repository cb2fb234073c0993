// Package sqlite keeps runs and their checkpoints in one SQLite file: no server, no C compiler, and what was written survives a
// crash of the process and of the machine.
//
//	book, err := sqlite.Open("fermata.db")
//	if err != nil {
//		return err
//	}
//	defer book.Close()
//
//	lease, err := book.Create(ctx, store.NewRun{Account: "acme", ID: "demo-1", StateKey: "refund-4711", Owner: host, Lease: time.Minute})
//	version, err := book.Fenced(lease).Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: head}}})
//	status, err := book.Rest(ctx, lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: questions})
//	...
//	receipt, err := book.Decide(ctx, decision)                                      // any process, any time later
//	work, err := book.Claim(ctx, store.Claim{Owner: host, Lease: time.Minute})      // goes on from book.Load(ctx, key)
//
// # Connections
//
// A Store has one connection that writes and a few that read. Readers see the last commit and never wait for the writer:
//
//	Save, Delete, Create, Rest, Decide, … ──► writer ×1   BEGIN IMMEDIATE … COMMIT (fsync) ──┐
//	                                                                                         ├──► file + WAL
//	Load, Get, List, Feed, History, … ──────► readers ×n  query_only, one snapshot ──────────┘
//
// Writes that come while another is under way are done together, and wait for the disk once: with sixteen callers a file takes several times as much as
// with one. Each is as good as alone, and its caller is told when all of them are on disk (group.go). One that has begun is not cancelled any more.
//
// Claim and Expire ask a reader first: those that find nothing to do, which most do, never get in a writer's way.
//
// Watch tells at once what this Store has written. What other processes write to the file is noticed by looking, ten times a second
// while somebody watches, and told without a name.
//
// Several processes on one machine may open the same file; SQLite's locks decide who writes, and a save waits up to
// five seconds for its turn before it fails with [ErrLocked]. While it waits for another process it does not notice that
// its context was cancelled. A network file system is not a place for this file: its locks cannot be trusted.
//
// # What the database guarantees
//
// The rules that must hold whoever writes are in the schema (migration/0002_runs.sql), as constraints and triggers: one run
// alive per state key, a lease exactly while a run is running, a fence that only grows, one verdict per interrupt and never one
// after its deadline, a clock that can only let expire, a policy that can only allow what its run is about to do, no sleep over a
// decision, no line for an effect without an approve of exactly this, events without a gap, and nothing forgotten of a run that
// is alive. What is sealed can only be sealed anew, by a transaction that does nothing else. A write that breaks one of them fails as a whole, even in the sqlite3 shell; for those about foreign keys
// the shell needs PRAGMA foreign_keys = ON.
//
// Time is the host's clock, read once per transaction, after the write lock was won.
//
// # The file
//
// A new file is made readable by its owner alone. It carries an application id and the checksums of the migrations that
// made it, and Open looks at both before it changes anything: a file of another program is refused with [ErrForeign],
// a file of a newer build with [ErrNewer], a file whose schema history differs from this build's with [ErrDrift].
//
// Beside it there is a WAL, of 64 MB at most for long: a write that makes it bigger has those behind it wait for the readers who are there, up to a second,
// so that it can be begun anew.
//
// The room of what was deleted is used again. Vacuum gives it back to the file system, in steps between which others write.
//
// Do not open the file by other means in the same process while a Store is open, not even to copy it: on POSIX systems
// closing any descriptor of a file drops all locks that the process holds on it.
package sqlite
