// Command bench measures Fermata's engine against Eino's, and against its own goals.
//
//	cd bench && go run .                       # everything, about two minutes
//	go run . -scenario '^wait/' -rounds 50     # some of it, more carefully
//	go run . -cpuprofile cpu.prof              # then: go tool pprof -tagfocus side=ours cpu.prof
//	go test -run '^$' -bench 'Ours/^wait$/^1KiB$' -cpuprofile cpu.prof
//
// Both sides run in one process, one after the other, again and again:
//
//	round 1:  GC  ours ×n  GC  Eino ×m    round 2:  GC  ours ×n  GC  Eino ×m   …
//
// so that whatever else the machine is doing falls on both. What counts is CPU time of the whole process (all threads,
// garbage collection included) and allocations. README.md says what is equal on the two sides and what is not.
package main
