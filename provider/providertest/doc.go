// Package providertest is the conformance suite for providers. A provider's own test calls it:
//
//	func TestProvider(t *testing.T) {
//		providertest.Run(t, providertest.Subject{
//			New:   func(t *testing.T, world *providertest.World) provider.Provider { … },
//			Store: func(*testing.T) store.Store { return memory.NewStore(nil) },
//		})
//	}
//
// It uses a provider only through the port and acts as the executor: it creates runs in a store,
// lets the provider execute them, reads their interrupts, decides, hands the run to another owner,
// simulates store outages at each write, and checks that all work was done once.
//
// # The graphs
//
// A subject provides three graphs, which do their work by calling [World.Work] and nothing else.
// They are described by their input and output, so that any engine can implement them. The inputs
// and answers are defaults: an engine with another form sets its own.
//
//	content-review   {"topic":"tea"}
//	                 does "draft", and raises one interrupt
//	                 {"action":"revise","feedback":"shorter"}    raises another one, with another id
//	                 {"action":"approve"}                        does "publish", and completes
//
//	pair             {"topic":"tea"}
//	                 raises two interrupts at once
//	                 {"action":"approve"} to one of them         does "left" or "right", and waits for the other with the same id
//	                 {"action":"approve"} to both                completes
//
//	drop             {"table":"users"}
//	                 requests an approval (fermata.Approval)
//	                 {"verb":"approve"}                          does "drop" as an effect with the receipt "dropped", and completes
//	                 {"verb":"reject"}                           does not
//
// Every provider needs the first graph. A provider without the capability Parallel need not have
// the second, and one without Effects not the third; skipped parts are logged. A provider without
// PartialResume never gets one of the two answers alone: the executor collects them. A provider
// whose runs have exactly one interrupt sets [Review.SingleQuestion].
//
// # Requirements
//
// A result is well-formed: a waiting run has interrupts, each with a unique id, JSON data and an
// address. An execution that cannot finish returns an error, not a failed run: a store outage says
// nothing about the run. Invalid input is a failed run with the code "invalid_input"; a run that
// cannot continue after an expiry fails with "expired". The provider ref does not appear in
// results, interrupts or errors.
package providertest
