// Package executor runs graphs and agents durably, in your process. Runs wait for people in a
// store, and any process on the same store continues them.
//
//	st, err := sqlite.Open("fermata.db")
//	e, err := executor.New(executor.Config{Store: st, KeyFile: "fermata.key", Graphs: []inproc.Graph{inproc.Flow(refund, inproc.FlowConfig[Refund]{})}})
//	e.Start()
//	defer e.Stop(ctx)
//
//	outcome, err := e.StartRun(ctx, executor.StartRequest{Account: "acme", Graph: "inproc:refund", StateKey: "order-1", Input: Refund{Order: "1"}})
//	...
//	outcome, err = e.Decide(ctx, executor.Decision{Account: "acme", StateKey: "order-1", ID: "click-1", Actor: "ann", Answers: map[string]any{id: fermata.Yes()}})
//
// A start and a decision count once, however often they are repeated. Each is recorded before it is
// executed:
//
//	StartRun ──► run saved ──► executed ──► question saved ──► NeedsInput
//	Decide   ──► decision saved ──► executed from the last step ──► Completed
//	                │
//	                └─ the process ends here: any process on the store goes on
//
// To serve people a web inbox and an HTTP API, pass the same [Config] to package server.
package executor
