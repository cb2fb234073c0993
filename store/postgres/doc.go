// Package postgres keeps everything of an executor in PostgreSQL: several replicas may share it, and what was acknowledged survives a
// crash of the process, of the machine and of the server.
//
//	kept, err := postgres.Open(ctx, os.Getenv("DATABASE_URL"), postgres.Config{})
//	if err != nil {
//		return err
//	}
//	defer kept.Close()
//
//	key := store.Key{Account: "acme", Run: "demo-1"}
//	version, err := kept.Save(ctx, key, 0, store.Delta{Put: []store.Part{{Name: "run", Data: head}}})
//	...
//	receipt, err := kept.Decide(ctx, decision)
//
// # A call
//
// A call is one transaction, and in nearly all cases one round trip: its statements go to the server together. A save compares and sets
// the version first, and writes the parts only if that has changed a row:
//
//	replica A ──Save on 7──┐                     ┌──► 8
//	                       ├──► row of the run ──┤
//	replica B ──Save on 7──┘   (B waits for A)   └──► store.ErrStale
//
// Whoever changes a run locks its row first, by a statement of its own, and judges in the next one, which sees all that the former holder of
// the lock has done; turn.go says how. What must never be in the book is refused by the database itself (migration/0002_runs.sql): above all an
// effect without an approve of exactly its interrupt, run and digest.
//
// A call returns nil after the server has said that the transaction is committed and on disk (synchronous_commit is on, whatever
// the server's default). When the connection is lost before that, the outcome is unknown: the call returns an error, and the
// caller repeats it or, after a Save, loads again. It is never repeated behind the caller's back.
//
// A call that waits for a lock gives up after [Config.LockTimeout], one that is at work after [Config.Timeout]; nothing is changed
// then. A call whose context ends asks the server to stop and waits a moment for its answer, so that the outcome is seldom unknown.
//
// # Events and hints
//
// The feed of an account has the order of the transactions. An event is shown when no transaction with a lower number is under way any
// more, in any database of the server: one that stays open for an hour holds up the feed for an hour, and loses nothing. The numbers are
// the server's. Open notices that a dump was restored on another one, and moves them: cursors stay good.
//
// Hints go by NOTIFY, after the commit and for many runs at once. A Store listens on a connection of its own from its first Watch on.
//
// # The database
//
// Fermata's tables are in a schema of their own. Open makes it and brings it up to date, under a lock, so that replicas may start at
// once; it refuses a schema with other tables ([ErrForeign]), one that a newer build has changed ([ErrNewer]) and one with another
// history ([ErrDrift]). The user needs the right to create a schema in the database, or to own one that is there already. If
// nothing is to be done, the right to use its tables is enough.
//
// Settings are sent when a connection is made. A pooler between Fermata and PostgreSQL must therefore give each client a connection of
// its own (session mode) and pass startup parameters on. PgBouncer refuses them; if it is told to ignore them, Open looks whether those count without which
// something would be lost, and fails. Give the user these settings then, by ALTER ROLE; the error names them.
// What is encrypted is said in the connection string: outside of one machine use sslmode=verify-full.
//
// It needs PostgreSQL 13 or newer and is tested on 15. If a standby is to take over without losing what was acknowledged, it has to be
// synchronous (synchronous_standby_names). A change is then acknowledged when the standby has it, too.
package postgres
