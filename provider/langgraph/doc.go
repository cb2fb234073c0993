// Package langgraph is the provider for agents on a LangGraph server, in Python or JavaScript. It
// uses the server's REST API and changes nothing in the agent.
//
//	p, err := langgraph.New(langgraph.Config{
//		URL:        "http://127.0.0.1:2024",
//		Assistants: map[string]langgraph.Assistant{"content_review": {}},
//	})
//
// A run of the graph "langgraph:content_review" is one thread of the server. It is started with the
// input of the run, and followed until it ends or interrupts:
//
//	people                     Fermata                            LangGraph server
//	  │                          │── POST /threads ──────────────────▶│
//	  │                          │── POST …/runs/stream {input} ─────▶│
//	  │◀───────────── request ───│◀──────── updates {__interrupt__} ──│
//	  │── answer ───────────────▶│                                    │
//	  │                          │── GET …/state: still the same? ───▶│
//	  │                          │── POST …/runs/stream {resume} ────▶│
//
// Answers are delivered by interrupt id, never by position, and never while another run of the
// thread is in progress. The value of an interrupt decides what people see, and the answer has the
// form that the agent expects:
//
//	LangChain's middleware (action_requests)   one approval per action; the answers are sent together, as decisions in the same order
//	Agent Inbox (action_request)               an approval; accept, edit, response or ignore
//	an action that accepts only a response     a question with a text as its answer
//	any other value                            a question; the answer follows its response schema
//	a breakpoint (interrupt_before, _after)    a hold with the state; the answer is null, or values to change
//
// LangGraph has no idempotency key. Therefore each run of a thread has the key of its step in its
// metadata. After a crash the provider looks for the run with this key, and joins it instead of
// sending the answers again. Before answers are sent, the provider compares the thread with what
// people saw. If another client has continued the thread, the answers are not used, and people are
// asked again.
//
// LangGraph executes a node again that was in progress when its process died, and the provider
// cannot prevent that: work in a node must be idempotent, as LangGraph's documentation says.
//
// The thread id is the provider ref. It does not leave this package: where data of the agent
// contains it, people see "(langgraph-thread)".
package langgraph
