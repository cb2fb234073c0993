// Package postgres stores everything of an executor in PostgreSQL. Several replicas may share the
// database. Acknowledged data survives a crash of the process, of the machine and of the server.
//
//	s, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Config{})
//	if err != nil {
//		return err
//	}
//	defer s.Close()
//
//	key := store.Key{Account: "acme", Run: "demo-1"}
//	version, err := s.Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: head}}})
//	...
//	receipt, err := s.Decide(ctx, decision)
//
// # A call
//
// A call is one transaction and nearly always one round trip: its statements are sent together. A
// save first compares and sets the version, and writes the parts only if that changed a row:
//
//	replica A ──Save on 7──┐                     ┌──► 8
//	                       ├──► row of the run ──┤
//	replica B ──Save on 7──┘   (B waits for A)   └──► store.ErrStale
//
// A transaction that changes a run first locks its row with a separate statement and checks in the
// next one, which sees everything that the former holder of the lock committed; see txn.go. The
// database itself rejects invalid states (migration/0002_runs.sql), above all an effect without an
// approval of exactly its interrupt, run and digest.
//
// A call returns nil after the server has confirmed that the transaction is committed and on disk
// (synchronous_commit is always on). If the connection is lost before that, the outcome is unknown:
// the call returns an error, and the caller repeats it or, after a Save, loads again. The Store
// never repeats a call by itself.
//
// A call that waits for a lock gives up after [Config.LockTimeout], a running one after
// [Config.Timeout]; then nothing is changed. A call whose context ends asks the server to cancel
// and waits a moment for the result, so the outcome is rarely unknown.
//
// # Events and hints
//
// The feed of an account is in transaction order. An event is returned when no transaction with a
// lower number is open any more, in any database of the server. A transaction that stays open for
// an hour delays the feed for an hour, but no event is lost. The transaction numbers belong to the
// server. Open detects that a dump was restored on another server and shifts the numbers, so that
// cursors stay valid.
//
// Hints are sent with NOTIFY, after the commit and for many runs at once. A Store listens on a
// separate connection from its first Watch on.
//
// # The database
//
// Fermata's tables are in their own schema. Open creates and migrates it under a lock, so replicas
// may start concurrently. It rejects a schema with other tables ([ErrForeign]), one of a newer
// build ([ErrNewer]) and one with a different history ([ErrDrift]). The user needs the privilege to
// create a schema in the database, or must own an existing one. If nothing has to be migrated,
// privileges on the tables are sufficient.
//
// Settings are sent when a connection is opened. A pooler between Fermata and PostgreSQL must
// therefore give each client its own connection (session mode) and forward startup parameters.
// PgBouncer rejects them. If it is configured to ignore them, Open checks the settings that prevent
// data loss, and fails if they are missing. Set them for the user with ALTER ROLE; the error names
// them. The connection string controls encryption: between machines use sslmode=verify-full.
//
// The package requires PostgreSQL 13 or newer and is tested on 15. A standby that takes over
// without losing acknowledged data must be synchronous (synchronous_standby_names). A change is
// then acknowledged when the standby has it too.
package postgres
