// Package providertest is the suite that every provider passes. A provider's own test calls it:
//
//	func TestProvider(t *testing.T) {
//		providertest.Run(t, providertest.Subject{
//			New:   func(t *testing.T, world *providertest.World) provider.Provider { … },
//			Store: func(*testing.T) store.Store { return memory.NewStore(nil) },
//		})
//	}
//
// It sees a provider only through the port, and stands where an executor would: it creates runs in a store, has the provider execute them, shows
// what they ask, decides, loses the run to another owner, cuts the provider off from the store at each of its writes, and looks whether
// everything that was done was done once.
//
// # The graphs
//
// A subject offers three graphs, which do their work by calling [World.Work] and nothing else. They are described here by what goes in and what
// comes out, so that any engine can have them. The inputs and answers are defaults: an engine whose questions have another form gives its own.
//
//	content-review   {"topic":"tea"}
//	                 does "draft", and asks one question
//	                 {"action":"revise","feedback":"shorter"}    asks again, under another id
//	                 {"action":"approve"}                        does "publish", and is completed
//
//	pair             {"topic":"tea"}
//	                 asks two questions at once
//	                 {"action":"approve"} to one of them         does "left" or "right", and waits for the other under the same id
//	                 {"action":"approve"} to both                is completed
//
//	drop             {"table":"users"}
//	                 asks for an approval (fermata.Approval)
//	                 {"verb":"approve"}                          does "drop" as an effect with the receipt "dropped", and is completed
//	                 {"verb":"reject"}                           does not
//
// The first is for every provider. A provider that does not declare the capability Parallel need not have the second, and one without Effects not the
// third; what is left out is logged. A provider whose runs are one question by nature says so with [Review.SingleQuestion].
//
// # What is asked of a provider
//
// A result is well-formed: a run that waits has questions, each with an id of its own, JSON for people and a place. What cannot be finished is an
// error, never a run that has failed: a store that is down says nothing about the run. Input that no run can begin with is a run that has failed with the
// code "invalid_input", and one that cannot go on because nobody answered in time has failed with "expired". The ref that a provider gave its run is in no result, no question and no error.
package providertest
