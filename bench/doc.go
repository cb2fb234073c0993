// Command bench measures Fermata's engine against Eino's, its executor against LangGraph and against bare SQL, and both against their own goals.
//
//	cd bench && go run .                       # everything, about twelve minutes; needs PostgreSQL's programs, Node and npm
//	go run . -scenario '^wait/' -rounds 50     # some of it, more carefully
//	go run . -scenario '^hold/'                # runs that wait for a person: ours, bare SQL, LangGraph
//	go run . -scenario '^http/'                # the same through the server, event streams, and too many requests
//	go run . -scenario '^parked/' -parked 1000000
//	go run . -cpuprofile cpu.prof              # then: go tool pprof -tagfocus side=ours cpu.prof
//	go test -run '^$' -bench 'Ours/^wait$/^1KiB$' -cpuprofile cpu.prof
//
// The two engines run in one process, one after the other, again and again:
//
//	round 1:  GC  ours ×n  GC  Eino ×m    round 2:  GC  ours ×n  GC  Eino ×m   …
//
// so that whatever else the machine is doing falls on both. What counts is CPU time of the whole process (all threads,
// garbage collection included) and allocations. README.md says what is equal on the two sides and what is not.
//
// The scenarios hold/…, http/… and parked/… measure what a server does all day, on SQLite and PostgreSQL: hold.go, web.go and parked.go say how.
package main
