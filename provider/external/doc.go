// Package external is the provider for agents that run elsewhere, in any language. Such an agent
// asks people through Fermata and does everything else itself.
//
//	p, err := external.New(external.Config{
//		Secrets: func(_ context.Context, account string) ([]string, error) { return secrets[account], nil },
//	})
//
// The agent starts a run of the graph "external:request" with its question:
//
//	{"kind":"refund", "data":{"order":17,"amount":"80.00"},          // shown to people
//	 "answerSchema":{"type":"object","required":["action"], …},      // JSON Schema of the answer; default: any JSON
//	 "callback":{"url":"https://agent.example.com/fermata"},         // without it the agent polls
//	 "timeout":86400}                                                // maximum open time, in seconds
//
// The run waits for an answer or its expiry. Then the answer is delivered:
//
//	agent                         Fermata                         people
//	  │── start ────────────────────▶│── request ─────────────────────▶│
//	  │                              │◀───────────────────── answer ───│
//	  │◀── POST, signed ─────────────│
//	  │─── 2xx ─────────────────────▶│  completed
//
// The webhook follows the Standard Webhooks specification 1.0: the headers webhook-id,
// webhook-timestamp and webhook-signature, with one signature for each secret of the account, and
// this body:
//
//	{"type":"request.answered", "timestamp":"2026-08-21T10:00:00Z",
//	 "data":{"stateKey":"refund-17","interrupt":"int_…","kind":"refund","answer":{…},"by":"ann","at":"2026-08-21T10:00:00Z"}}
//
// An expired request is sent as "request.expired" without an answer. It is neither an approval nor
// a rejection, so the run does not complete, but fails with the code "expired".
//
// If the run is ended, or another run takes its state key, while the request is open,
// "request.withdrawn" is sent with the reason "cancelled" or "superseded":
//
//	{"type":"request.withdrawn", "timestamp":"2026-08-21T10:00:00Z",
//	 "data":{"stateKey":"refund-17","interrupt":"int_…","kind":"refund","reason":"cancelled","at":"2026-08-21T10:00:00Z"}}
//
// An approver may ask the agent for clarification first. The agent receives "request.clarification"
// and replies through the API at any time; the request stays open:
//
//	{"type":"request.clarification", "timestamp":"2026-08-21T10:00:00Z",
//	 "data":{"stateKey":"refund-17","interrupt":"int_…","kind":"refund","clarification":1,"text":"Was it damaged?","by":"ann","at":"2026-08-21T10:00:00Z"}}
//
// A webhook is delivered at least once. It is retried until the receiver answers 2xx, for about
// three days, and also if this process died before it could record the delivery. The webhook-id and
// the body are the same each time: a receiver must store the ids that it has processed. After 410,
// or after the last attempt, the run of an answer is parked until an operator retries it. A
// clarification is not sent again after that, and an ended run stays ended whether or not the
// receiver was notified. The receivers of an erased account get no webhooks.
//
// Agents choose the URL, and an agent may be compromised. Therefore only https on port 443 of a
// public address is called, the address is checked when the connection is made, and only the status
// of the response is read; [Config.Allow] makes exceptions.
package external
