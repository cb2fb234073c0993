// Package sqlite keeps checkpoints in one SQLite file: no server, no C compiler, and what was saved survives a crash of
// the process and of the machine.
//
//	checkpoints, err := sqlite.Open("fermata.db")
//	if err != nil {
//		return err
//	}
//	defer checkpoints.Close()
//
//	key := store.Key{Account: "acme", Run: "demo-1"}
//	version, err := checkpoints.Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: head}}})
//	...
//	checkpoint, err := checkpoints.Load(ctx, key)
//
// # Connections
//
// A Store has one connection that writes and a few that read. Readers see the last commit and never wait for the writer:
//
//	Save, Delete ──► writer ×1   BEGIN IMMEDIATE … COMMIT (fsync) ──┐
//	                                                                ├──► file + WAL
//	Load ──────────► readers ×n  query_only, one statement ─────────┘
//
// Several processes on one machine may open the same file; SQLite's locks decide who writes, and a save waits up to
// five seconds for its turn before it fails with [ErrLocked]. While it waits for another process it does not notice that
// its context was cancelled. A network file system is not a place for this file: its locks cannot be trusted.
//
// # The file
//
// A new file is made readable by its owner alone. It carries an application id and the checksums of the migrations that
// made it, and Open looks at both before it changes anything: a file of another program is refused with [ErrForeign],
// a file of a newer build with [ErrNewer], a file whose schema history differs from this build's with [ErrDrift].
//
// Do not open the file by other means in the same process while a Store is open, not even to copy it: on POSIX systems
// closing any descriptor of a file drops all locks that the process holds on it.
package sqlite
