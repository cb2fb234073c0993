// Package crashpoint kills an executor at every point where it could die, one at a time, and then looks whether anybody could tell. It holds tests
// only. Package chaos does the same with real processes and real time; here a process is an executor, all that it does goes through one place
// (port_test.go), and nothing is left to chance.
//
// A process can die in each call to the store or to the world outside, in three ways: the call does not take effect; it does, and nobody learns what
// came of it; or it is still on its way, and arrives when somebody else is at work. From then on nothing of what the process does happens.
//
// TestCrash_AtEveryCall counts the calls of one story, from the start of an order over the people who decide on it to its end, and tells it again with a
// death at each of them: for targets that know keys, that can be asked and know fences, and that can do nothing; with an approve, an
// approve of something else and a reject; on each store. What has to come of each death is known, down to whether a person is asked if it happened.
//
// TestProperty_AnySchedule lets a seed decide what happens next: a call of one of two replicas, a death, a pause that is longer than a lease, a word of
// somebody, a click of long ago, a lapse. It runs in bubbles of testing/synctest, one call at a time, and compares what everybody was told with what
// was done outside and what is known in the end.
//
// FERMATA_SOAK=1 dies in reads as well, tells all stories a hundred times on PostgreSQL, and tries a million seeds, or as many as the tests have time
// for. FERMATA_CRASHPOINT_SEED=n tries one, and shows what processes complain of.
package crashpoint
