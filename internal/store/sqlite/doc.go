// Package sqlite stores runs and their checkpoints in one SQLite file. It needs no server and no C
// compiler. Committed data survives a crash of the process and of the machine.
//
//	s, err := sqlite.Open("fermata.db")
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//
//	lease, err := s.Create(ctx, store.NewRun{Account: "acme", ID: "demo-1", StateKey: "refund-4711", Owner: host, Lease: time.Minute})
//	version, err := s.Fenced(lease).Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: head}}})
//	status, err := s.EndExecution(ctx, lease, store.ExecutionEnd{Status: store.StatusWaiting, Open: interrupts})
//	...
//	receipt, err := s.Decide(ctx, decision)                                      // any process, any time later
//	claimed, err := s.Claim(ctx, store.Claim{Owner: host, Lease: time.Minute})   // continues from s.Load(ctx, key)
//
// # Connections
//
// A Store has one connection that writes and several that read. Readers see the last commit and
// never wait for the writer:
//
//	Save, Delete, Create, EndExecution, Decide, … ──► writer ×1   BEGIN IMMEDIATE … COMMIT (fsync) ──┐
//	                                                                                                 ├──► file + WAL
//	Load, Get, List, Feed, History, … ──────────────► readers ×n  query_only, one snapshot ──────────┘
//
// Concurrent writes are committed as a group and wait for the disk once: sixteen callers get
// several times the throughput of one. Each write is isolated from the others, and its caller gets
// the result when the group is on disk (groupcommit.go). A write that has begun cannot be
// cancelled.
//
// Claim and Expire first ask a reader. Calls that find no work, which are most, never block a
// writer.
//
// Watch reports writes of this Store at once. Writes of other processes are detected by polling,
// ten times a second while there are watchers, and reported with a zero key.
//
// Several processes on one machine may open the same file. SQLite's locks decide which one writes,
// and a save waits up to five seconds for the lock before it fails with [ErrLocked]. While it waits
// for another process, it does not notice the end of its context. Do not put the file on a network
// file system: its locks are not reliable.
//
// # Database constraints
//
// Constraints and triggers in the schema (migration/0002_runs.sql) enforce the invariants for every
// writer: one active run per state key; a lease exactly while a run is running; a fence that only
// grows; one verdict per interrupt, never after its deadline; the clock can only expire; a policy
// can only allow what its run is about to do; a run does not wait with an unapplied decision; no
// effect without an approval of exactly that action; events without gaps; and no deletion of data
// of an active run. Sealed values can only be re-encrypted, by a transaction that does nothing
// else. A write that violates a rule fails as a whole, even in the sqlite3 shell. For foreign keys
// the shell needs PRAGMA foreign_keys = ON.
//
// The time is the host's clock, read once per transaction, after the write lock was acquired.
//
// # The file
//
// A new file is readable only by its owner. It has an application id and the checksums of its
// migrations, and Open checks both before it changes anything. A file of another program is
// rejected with [ErrForeign], a file of a newer build with [ErrNewer], and a file with a different
// schema history with [ErrDrift].
//
// The WAL next to the file stays below about 64 MB: a write that makes it larger makes the
// following writes wait up to a second for the current readers, so that the WAL can be reset.
//
// The space of deleted data is reused. Vacuum returns it to the file system in steps between which
// other writes run.
//
// Do not open the file by other means in the same process while a Store is open, not even to copy
// it. On POSIX systems, closing any descriptor of a file drops all locks that the process holds on
// it.
package sqlite
