// Package crashpoint crashes an executor at every point where it could die, one at a time, and
// checks the result. It contains only tests. Package chaos does the same with real processes and
// real time. Here a process is an executor, all its calls go through one place (port_test.go), and
// everything is deterministic.
//
// A process can crash in each call to the store or to a target, in three ways: the call does not
// take effect; it takes effect, but its result is lost; or it is still in transit and arrives while
// another process works. After the crash, no call of the process takes effect.
//
// TestCrash_AtEveryCall counts the calls of one scenario, from the start of an order to its end,
// and repeats it with a crash at each of them: for targets that support keys, that support queries
// and fences, and that support neither; with an approval, an edited approval and a rejection; on
// each store. The result of each crash is known, including whether a person is asked about an
// effect in doubt.
//
// TestProperty_AnySchedule lets a seed choose the next step: a call of one of two replicas, a
// crash, a pause longer than a lease, a decision, an old click, an expiry. It runs in bubbles of
// testing/synctest, one call at a time, and compares the replies with the executed calls and the
// final state.
//
// FERMATA_TEST=soak crashes in reads as well, runs all scenarios a hundred times on PostgreSQL, and
// tries a million seeds, or as many as time allows. FERMATA_CRASHPOINT_SEED=n tries one, and shows
// the logs of the processes.
package crashpoint
