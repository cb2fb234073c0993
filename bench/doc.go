// Command bench compares Fermata's engine with Eino's, its executor with LangGraph, and its server
// with its executor, and checks them against their goals.
//
//	cd bench && go run .                       # everything, about twelve minutes; needs PostgreSQL's programs, Node and npm
//	go run . -scenario '^wait/' -rounds 50     # some of it, more precisely
//	go run . -scenario '^hold/'                # runs that wait for a person: ours, LangGraph
//	go run . -scenario '^http/'                # the same through the server, event streams, and overload
//	go run . -scenario '^parked/' -parked 1000000
//	go run . -cpuprofile cpu.prof              # then: go tool pprof -tagfocus side=ours cpu.prof
//	go test -run '^$' -bench 'Ours/^wait$/^1KiB$' -cpuprofile cpu.prof
//
// The two engines run in one process in alternation:
//
//	round 1:  GC  ours ×n  GC  Eino ×m    round 2:  GC  ours ×n  GC  Eino ×m   …
//
// so that other load on the machine affects both. The measure is CPU time of the whole process (all
// threads, including garbage collection) and allocations. README.md describes what is equal on the
// two sides and what is not.
//
// The scenarios hold/…, http/… and parked/… measure the main work of a server, on SQLite and
// PostgreSQL: see hold.go, web.go and parked.go.
package main
