// Package postgres keeps checkpoints in PostgreSQL: several replicas may share them, and what was saved survives a crash
// of the process, of the machine and of the server.
//
//	checkpoints, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Config{})
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
// # A call
//
// Load, Save and Delete are one statement each, and so one round trip and one transaction. Save compares and sets the version
// first; the parts are written by the same statement, and only if that has changed a row:
//
//	replica A ──Save on 7──┐                     ┌──► 8
//	                       ├──► row of the run ──┤
//	replica B ──Save on 7──┘   (B waits for A)   └──► store.ErrStale
//
// Save returns nil after the server has said that the transaction is committed and on disk (synchronous_commit is on, whatever
// the server's default). When the connection is lost before that, the outcome is unknown: Save returns an error, and the
// caller loads again. It is never repeated behind the caller's back. The server may still be at work on a save
// whose connection was lost; of it and a new one on the same version, one wins.
//
// A call that waits for a lock gives up after [Config.LockTimeout], one that is at work after [Config.Timeout]; nothing is changed
// then. A call whose context ends asks the server to stop and waits a moment for its answer, so that the outcome is seldom unknown.
//
// # The database
//
// Fermata's tables are in a schema of their own. Open makes it and brings it up to date, under a lock, so that replicas may start at
// once; it refuses a schema with other tables ([ErrForeign]), one that a newer build has changed ([ErrNewer]) and one with another
// history ([ErrDrift]). The user needs the right to create a schema in the database, or to own one that is there already. If
// nothing is to be done, the right to use its tables is enough.
//
// Settings are sent when a connection is made. A pooler between Fermata and PostgreSQL must therefore give each client a connection of
// its own (session mode) and pass startup parameters on; PgBouncer refuses them unless told otherwise, and then Open fails.
// What is encrypted is said in the connection string: outside of one machine use sslmode=verify-full.
//
// It needs PostgreSQL 13 or newer and is tested on 15. If a standby is to take over without losing what was acknowledged, it has to be
// synchronous (synchronous_standby_names). A save is then acknowledged when the standby has it, too.
package postgres
