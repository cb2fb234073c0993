package audit

import (
	"cmp"
	"fmt"
	"iter"
	"strings"
)

// Trail is what the log says about one action: what was proposed, what was approved and what was
// executed. Equal digests mean the same action with the same arguments.
type Trail struct {
	Run     string `json:"run"`
	Request string `json:"request"`
	Action  string `json:"action"`
	// Proposed is what the run asked for, Edited what people made of it, in order.
	Proposed TrailStep   `json:"proposed,omitzero"`
	Edited   []TrailStep `json:"edited,omitempty"`
	// Approved is the decision, or the rule or grant that allowed the action without one.
	Approved TrailStep `json:"approved,omitzero"`
	// Ended is how the request ended without an approval: a verb, "expired" or "withdrawn".
	Ended    string      `json:"ended,omitempty"`
	Executed []TrailStep `json:"executed,omitempty"`
	// NotExecuted is the receipt of an external agent that did not begin the action.
	NotExecuted TrailStep `json:"notExecuted,omitzero"`
}

// TrailStep is one record of a trail.
type TrailStep struct {
	Seq    int64     `json:"seq"`
	At     Timestamp `json:"at"`
	By     string    `json:"by"`
	Digest Digest    `json:"digest,omitzero"`
	// Shown is what the person saw who decided.
	Shown Shown `json:"shown,omitzero"`
	// Rules are the rules that allowed it.
	Rules []string `json:"rules,omitempty"`
	// Number is the number of an effect, State its state, and Ended when it ended.
	Number int         `json:"number,omitempty"`
	State  EffectState `json:"state,omitempty"`
	Ended  Timestamp   `json:"ended,omitzero"`
	// Receipt is what an external agent says it did, instead of a state.
	Receipt ReceiptOutcome `json:"receipt,omitempty"`
}

// AsApproved reports whether all that was executed is what was approved.
func (t Trail) AsApproved() bool {
	for _, done := range t.Executed {
		if t.Approved.Digest == (Digest{}) || done.Digest != t.Approved.Digest {
			return false
		}
	}
	return true
}

// ApprovedArgs returns the digest of the approved action. Earlier versions did not write it.
func (d RequestDecided) ApprovedArgs() Digest {
	return cmp.Or(d.Approved, d.Edited, d.Action.Args)
}

// Trails returns the trail of every action in the records, in the order in which they were
// proposed.
func Trails(records iter.Seq2[Record, error]) ([]Trail, error) {
	var order []string
	trails := make(map[string]*Trail)
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		id := r.Location.Interrupt
		t := trails[id]
		if t == nil {
			action := actionOf(r.Body)
			if id == "" || action.Name == "" {
				continue
			}
			t = &Trail{Run: r.Location.Run, Request: id, Action: action.Name}
			trails[id], order = t, append(order, id)
		}
		t.add(r)
	}
	all := make([]Trail, 0, len(order))
	for _, id := range order {
		all = append(all, *trails[id])
	}
	return all, nil
}

// actionOf returns the action that a record begins the trail of.
func actionOf(body Body) Action {
	switch body := body.(type) {
	case RequestAsked:
		return body.Action
	case RequestDecided:
		return body.Action
	case GrantUsed:
		return body.Action
	case EffectBegun:
		return body.Action
	default:
		return Action{}
	}
}

func (t *Trail) add(r Record) {
	step := TrailStep{Seq: r.Seq, At: r.Time, By: r.Actor.Principal}
	switch body := r.Body.(type) {
	case RequestAsked: // again, if the run asked the same again
		step.Digest, step.Rules = body.Action.Args, body.Ruling.Rules
		t.Proposed, t.Ended = step, ""
	case RequestDecided:
		step.Shown = body.Shown
		switch {
		case body.Settles && body.Verb.Approves():
			step.Digest = body.ApprovedArgs()
			t.Approved = step
		case body.Settles:
			t.Ended = string(body.Verb)
		case body.Verb == VerbApproveWithEdits:
			step.Digest = body.Edited
			t.Edited = append(t.Edited, step)
		}
	case RequestExpired:
		t.Ended = "expired"
	case RequestWithdrawn:
		t.Ended = "withdrawn"
	case GrantUsed:
		step.Digest, step.Rules = body.Action.Args, append(body.Ruling.Rules, body.Grant)
		t.Approved = step
	case EffectBegun:
		step.Digest, step.Number, step.State = body.Action.Args, body.Number, EffectStateBegun
		if len(body.Ruling.Rules) > 0 {
			t.Approved = TrailStep{Seq: r.Seq, At: r.Time, By: body.Ruling.Rules[0], Digest: step.Digest, Rules: body.Ruling.Rules}
		}
		t.Executed = append(t.Executed, step)
	case AgentReceipt:
		step.Digest, step.Receipt = body.Ran, body.Outcome
		if body.Outcome == ReceiptNotDone {
			t.NotExecuted = step
		} else {
			t.Executed = append(t.Executed, step)
		}
	case EffectEnded:
		for i := range t.Executed {
			if t.Executed[i].Number == body.Number {
				t.Executed[i].State, t.Executed[i].Ended = body.State, r.Time
			}
		}
	default: // not about the action
	}
}

// ShownIn returns what a record says that its actor saw.
func ShownIn(body Body) Shown {
	switch body := body.(type) {
	case RequestRendered:
		return body.Shown
	case RequestDecided:
		return body.Shown
	case RequestRefused:
		return body.Shown
	default:
		return Shown{}
	}
}

// DescribeDecision describes for people what a decision was about and what the person saw, in one
// line per fact. It returns "" for other records.
func DescribeDecision(raw []byte) string {
	r, err := Parse(raw)
	d, decided := r.Body.(RequestDecided)
	if err != nil || !decided {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Decision: %s by %q at %s.\n", d.Verb, r.Actor.Principal, cmp.Or(d.Timing.Decided, r.Time))
	if d.Action.Name != "" {
		fmt.Fprintf(&b, "Action %q: proposed %s", d.Action.Name, d.Action.Args.Short())
		if d.Edited != (Digest{}) {
			fmt.Fprintf(&b, ", edited %s", d.Edited.Short())
		}
		if d.Settles && d.Verb.Approves() {
			fmt.Fprintf(&b, ", approved %s", d.ApprovedArgs().Short())
		}
		b.WriteString(".\n")
	}
	if d.Shown.Template == "" {
		b.WriteString("The screen was not recorded.\n")
		return b.String()
	}
	visible := map[Visibility]string{VisibleAll: "completely visible", VisiblePart: "NOT completely visible", "": "unknown whether completely visible"}[d.Shown.Extent()]
	since := "recorded"
	if d.Shown.Opened() {
		since = "opened"
	}
	fmt.Fprintf(&b, "Shown on %q with template %q, %s, %s at %s: text %s.\n", d.Shown.Surface, d.Shown.Template, visible, since, d.Shown.At, d.Shown.Screen.Short())
	return b.String()
}

// Short returns enough of a digest to compare it with others of a run.
func (d Digest) Short() string {
	if len(d.Sum) < 12 {
		return "(no digest)"
	}
	return d.Sum[:12]
}
