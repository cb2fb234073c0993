package audit

import "fmt"

// Actor is who did something, and how much that is worth. Principals are ids, not names or addresses of people: they stay in the record.
type Actor struct {
	Principal string    `json:"principal"`
	Kind      ActorKind `json:"kind"`
	// Via is the channel, Auth how the actor was authenticated there, Identity who they are there, and Link what makes that identity
	// the principal's.
	Via      string `json:"via,omitempty"`
	Auth     string `json:"auth,omitempty"`
	MFA      bool   `json:"mfa,omitempty"`
	Identity string `json:"identity,omitempty"`
	Link     string `json:"link,omitempty"`
}

func (a Actor) valid() error {
	if a.Principal == "" {
		return fmt.Errorf("an actor without a principal")
	}
	return nil
}

// ActorKind says what an actor is.
type ActorKind string

// What an actor can be.
const (
	ActorPerson ActorKind = "person"
	ActorPolicy ActorKind = "policy"
	ActorClock  ActorKind = "clock"
	ActorAgent  ActorKind = "agent"
	ActorSystem ActorKind = "system" // Fermata itself
)

func (k ActorKind) valid() error {
	return oneOf(k, ActorPerson, ActorPolicy, ActorClock, ActorAgent, ActorSystem)
}

// Location is where in which run something happened. A record that is about no run has none.
type Location struct {
	Run       string `json:"run,omitempty"`
	StateKey  string `json:"stateKey,omitempty"`
	Graph     string `json:"graph,omitempty"`
	Address   string `json:"address,omitempty"`
	Interrupt string `json:"interrupt,omitempty"`
	Request   string `json:"request,omitempty"`
	// Revision is that of the request.
	Revision int64 `json:"revision,omitempty"`
}

// Shown is what a person had before their eyes.
type Shown struct {
	Surface string `json:"surface,omitempty"`
	// Rendered is the digest of the view as it was rendered, Template what rendered it. Clipped says that a part of it was not visible.
	Rendered Digest     `json:"rendered,omitzero"`
	Template string     `json:"template,omitempty"`
	Clipped  bool       `json:"clipped,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
	At       Timestamp  `json:"at,omitzero"`
}

// Evidence is something that was shown beside the question, or could be opened from there.
type Evidence struct {
	Name   string `json:"name"`
	Digest Digest `json:"digest"`
}

// Action is what is to be done. Args is the digest of the name by which the runtime knows the action with its arguments (its plain
// digest), under a salt, so that the effects ledger can be held against it without the arguments.
type Action struct {
	Name    string   `json:"name"`
	Args    Digest   `json:"args"`
	Effects []string `json:"effects,omitempty"`
	Cost    string   `json:"cost,omitempty"`
}

// Ruling is the policy that was in force and what it said. Its digest has no salt: a policy is no secret, and an auditor compares it with the file.
type Ruling struct {
	Digest     string   `json:"digest,omitempty"`
	Version    string   `json:"version,omitempty"`
	Rules      []string `json:"rules,omitempty"`
	Trace      Digest   `json:"trace,omitzero"`
	Grant      string   `json:"grant,omitempty"`
	BreakGlass bool     `json:"breakGlass,omitempty"`
}

// Timing is how long everything took. Reading is the time between the first view and the decision.
type Timing struct {
	Created   Timestamp `json:"created,omitzero"`
	Delivered Timestamp `json:"delivered,omitzero"`
	FirstView Timestamp `json:"firstView,omitzero"`
	Decided   Timestamp `json:"decided,omitzero"`
	LatencyMS int64     `json:"latencyMs,omitempty"`
	ReadingMS int64     `json:"readingMs,omitempty"`
	Deadline  Timestamp `json:"deadline,omitzero"`
}

// Click is what came in by a channel. Key is how the channel names the delivery, Raw the digest of the bytes that came.
type Click struct {
	Key string `json:"key,omitempty"`
	Raw Digest `json:"raw,omitzero"`
}

// Trace joins a record with the traces of the runtime.
type Trace struct {
	TraceID string `json:"traceId,omitempty"`
	SpanID  string `json:"spanId,omitempty"`
}

func oneOf[T ~string](got T, known ...T) error {
	for _, k := range known {
		if got == k {
			return nil
		}
	}
	return fmt.Errorf("%.40q is none of %q", got, known)
}
