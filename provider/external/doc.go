// Package external is the provider for agents that run elsewhere, in any language. Such an agent asks people through Fermata and does
// everything else itself.
//
//	p, err := external.New(external.Config{
//		Secrets: func(_ context.Context, account string) ([]string, error) { return secrets[account], nil },
//	})
//
// The agent starts a run of the graph "external:request" with what it wants to know:
//
//	{"kind":"refund", "data":{"order":17,"amount":"80.00"},          // what people see
//	 "answerSchema":{"type":"object","required":["action"], …},      // what an answer must fit; any JSON without one
//	 "callback":{"url":"https://agent.example.com/fermata"},         // without one the agent pulls
//	 "timeout":86400}                                                // how long it may be open, in seconds
//
// The run waits until somebody answers, or nobody did in time. Then it comes back:
//
//	agent                         Fermata                         people
//	  │── start ────────────────────▶│── request ─────────────────────▶│
//	  │                              │◀───────────────────── answer ───│
//	  │◀── POST, signed ─────────────│
//	  │─── 2xx ─────────────────────▶│  completed
//
// The webhook follows the Standard Webhooks specification 1.0: the headers webhook-id, webhook-timestamp and webhook-signature, of which the
// last has one signature for each secret of the account, and this body:
//
//	{"type":"request.answered", "timestamp":"2026-08-21T10:00:00Z",
//	 "data":{"stateKey":"refund-17","interrupt":"int_…","kind":"refund","answer":{…},"by":"ann","at":"2026-08-21T10:00:00Z"}}
//
// A question that nobody answered in time is "request.expired" and has no answer. It is neither a yes nor a no, so the run does not complete:
// whoever looks only at that would take it for an answer. It fails with the code "expired".
//
// If somebody ends the run, or another one takes its state key, while the question is open, nobody will answer it any more. That is "request.withdrawn",
// with the reason "cancelled" or "superseded":
//
//	{"type":"request.withdrawn", "timestamp":"2026-08-21T10:00:00Z",
//	 "data":{"stateKey":"refund-17","interrupt":"int_…","kind":"refund","reason":"cancelled","at":"2026-08-21T10:00:00Z"}}
//
// Somebody who has to decide may ask the agent something first. The agent is told so with "request.question", and answers with the API, whenever it
// can; the request stays open meanwhile:
//
//	{"type":"request.question", "timestamp":"2026-08-21T10:00:00Z",
//	 "data":{"stateKey":"refund-17","interrupt":"int_…","kind":"refund","question":1,"text":"Was it damaged?","by":"ann","at":"2026-08-21T10:00:00Z"}}
//
// A webhook is delivered at least once. It is sent again until the receiver says 2xx, for about three days, and also when this process died
// before it could write down that the receiver did. It has the same webhook-id and the same body each time: a receiver has to keep the ids that
// it has seen. After 410, or after the last attempt, the run of an answer is parked until somebody lets it go on: that is the dead letter. A question is
// not sent any more then, and a run that was ended stays so, whether or not the receiver heard of it. The receiver of an account that is erased hears nothing.
//
// Agents name the URL, and an agent may be under somebody else's control. So only https on port 443 of a public address is called, the address is
// looked at when the connection is made, and nothing but the status of the response is read; [Config.Allow] makes exceptions.
package external
