// Package chaos injects faults while simulated people work, and then compares what the outside
// world saw with the replies that people got. It contains only tests.
//
//	people ──start, decide, look, cancel──▶ replica ×n ──▶ proxy ×n ──▶ database
//	   ▲        (every answer is kept)        │  ▲              ▲           ▲
//	   │                                      │  │              │           │
//	   └────────── look things up ────── sink ◀  └── kill -9, stop, term, cut, kill -9 ── nemesis
//
// A replica is a process: this test binary, started again. The sink is the outside world; it
// records every call. One of its targets supports idempotency keys, the other executes every call.
// People click twice, contradict each other, repeat old decisions, change their minds, answer only
// some questions, send invalid answers, and repeat a request under the same id until they get a
// reply.
//
// At the end the faults stop, everything settles, and the checks run: those that need only the sink
// and the people (external_check_test.go), those that read the store (store_check_test.go), and
// whether the submissions to each interrupt are linearizable (register_test.go).
//
// A second kind of test is about the desk (desk_*_test.go): payments that two people must approve
// within a second or two, on routes that notify, remind, page, widen and expire, with HTTP delivery
// to the sink. People act when timers fire, several at once, at several replicas, and retry until
// they get a reply. Some are not eligible, some have left the group by the last vote, some edit,
// some only claim, comment, delegate, snooze or extend. At the end all sources of each request are
// compared: the request, the run, the store, the audit log, the outbox, the sink and the replies
// must agree on one decision, on the counted votes, on the executed action, on each route step and
// on each notice (desk_request_check_test.go, desk_vote_check_test.go, desk_timer_check_test.go).
// The routes are adapted to the speed of the machine.
//
// The self-tests (checks_self_test.go, desk_checks_self_test.go) give each check an altered history
// and expect the violation. Otherwise a result without violations would not be significant.
//
// FERMATA_TEST=nightly kills more replicas, FERMATA_TEST=soak fifty times as many.
// FERMATA_CHAOS_SEED repeats the random choices of a failed run, as far as processes and networks
// are repeatable.
package chaos
