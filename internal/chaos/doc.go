// Package chaos kills what it can while people work with it, and then compares what the outside world saw with what everybody was told.
// It holds tests only.
//
//	people ──start, decide, look, cancel──▶ replica ×n ──▶ proxy ×n ──▶ database
//	   ▲        (every answer is kept)        │  ▲              ▲           ▲
//	   │                                      │  │              │           │
//	   └────────── look things up ────── sink ◀  └── kill -9, stop, term, cut, kill -9 ── nemesis
//
// A replica is a process: this test binary, started again. The sink is the outside world; it writes down whatever is done to it. One of its
// targets knows idempotency keys, the other does what it is told as often as it is told. People click twice, contradict each other, send
// old decisions again, change their mind, answer half of what is asked, talk nonsense, and repeat a request under the same id until they
// get an answer.
//
// In the end the faults stop, everything settles, and the checks begin: those that need nothing but the sink and the people (outside_test.go),
// those that read the store (book_test.go), and whether there is an order of everything that was said to each question in which every
// answer makes sense (register_test.go).
//
// A second kind of world is about the desk (desk_*_test.go): payments that two people have to approve, within a second or two, on routes that notify, remind,
// page, widen and expire in the meantime, told over HTTP to the sink. People come at the moment at which the clock does something, several at once, at
// several replicas, and say it again until they are answered; some may not decide, some have left the group when the last vote is cast, some edit what is
// asked, some only claim, comment, delegate, snooze, extend. In the end each request is held against itself: the request, the run, the store, the
// audit log, the outbox, the sink and what everybody was told have to agree on one end, on who was counted, on what was meant and done, on each step of the route
// and on each notice (desk_book_test.go, desk_words_test.go, desk_clock_test.go). How slow the routes are goes by how slow the machine is. What is known
// to go wrong, and is passed over, is listed in desk_known_test.go.
//
// The same people, sink and checks also meet the protocol with one lock per run, which Fermata's design replaces (seed_test.go). There they must find
// something, or nobody should believe them when they find nothing.
//
// FERMATA_SOAK=1 runs twenty times as many cycles. FERMATA_CHAOS_SEED repeats the choices of a run that failed, as far as
// processes and networks let themselves be repeated.
package chaos
