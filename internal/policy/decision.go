package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/requirement"
)

// Decision is the decision of a set on an input, with its explanation. The same set and the same
// input give the same decision, byte for byte.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Rules are the ids of the rules that decided, in file order. If none did, it is only
	// [DefaultRule].
	Rules []string `json:"rules"`
	// Reason is the explanation for the approver and for the agent.
	Reason string `json:"reason"`
	// Requirement is set if the verdict is Ask. It is nil only if the request cannot be allowed or
	// denied and the file has no defaults.ask: one person is asked.
	Requirement *Requirement `json:"need,omitempty"`
	// Policy and Input are the digests of the set and of the input. Version is the label of the
	// set.
	Policy  string `json:"policy"`
	Version string `json:"version,omitempty"`
	Input   string `json:"input"`
	// Trace has every rule that could match, in file order. OtherToolRules counts the rules for
	// other tools.
	Trace          []Trace `json:"trace"`
	OtherToolRules int     `json:"elsewhere,omitempty"`
	// DryRunVerdict is the verdict with the dry-run rules, if it differs.
	DryRunVerdict Verdict `json:"rehearsed,omitempty"`
	// Charges are added to the counters if the action is executed.
	Charges []Charge `json:"charges,omitempty"`
	// Grant is the id of the grant that replaced the approval, if any. Rules never set it.
	Grant string `json:"grant,omitempty"`
}

// RuleOutcome is the outcome of one rule.
type RuleOutcome string

// The outcomes. A failed rule counts as a hit if it asks or denies, and as a miss if it allows.
const (
	RuleHit    RuleOutcome = "hit"
	RuleMiss   RuleOutcome = "miss"
	RuleFailed RuleOutcome = "error"
	// RuleSkipped is a rule that does not apply to the kind of request, whatever its condition.
	RuleSkipped RuleOutcome = "skip"
)

// Trace is the evaluation of one rule.
type Trace struct {
	Rule string `json:"rule"`
	// Digest changes when the rule changes. A grant is valid only for the rules under which it was
	// given.
	Digest  string      `json:"digest"`
	Then    Verdict     `json:"then"`
	Outcome RuleOutcome `json:"outcome"`
	// Error explains why the rule failed. It never contains argument values.
	Error  string `json:"error,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Cost is in CEL cost units.
	Cost uint64 `json:"cost"`
	// Limit has the numbers of a limit that was evaluated.
	Limit *LimitTrace `json:"limit,omitempty"`
}

// LimitTrace has the numbers of a limit.
type LimitTrace struct {
	Used   int64    `json:"used"`
	Adds   int64    `json:"adds"`
	Max    int64    `json:"max"`
	Window Duration `json:"window"`
}

// counts reports whether the rule takes part in the verdict.
func (t Trace) counts() bool {
	return t.Outcome == RuleHit || t.Outcome == RuleFailed && t.Then != Allow
}

// Ruling converts the decision to the root package's type.
func (d Decision) Ruling() fermata.Ruling {
	return fermata.Ruling{Verdict: d.Verdict.toRoot(), Rule: strings.Join(d.Rules, " "), Reason: d.Reason, PolicyDigest: d.Policy}
}

// RuleDigests maps the rules that decided to their digests, for grants.
func (d Decision) RuleDigests() map[string]string {
	traced := make(map[string]string, len(d.Trace))
	for _, t := range d.Trace {
		traced[t.Rule] = t.Digest
	}
	digests := make(map[string]string, len(d.Rules))
	for _, id := range d.Rules {
		digest, known := traced[id]
		if !known {
			digest = d.defaultDigest()
		}
		digests[id] = digest
	}
	return digests
}

// defaultDigest is the digest of the default's own requirement.
func (d Decision) defaultDigest() string {
	return digestOfRule(Rule{ID: DefaultRule, Then: d.Verdict, Ask: d.Requirement})
}

// Explain writes the decision for people: the verdict, the requirement, and the outcome of each
// rule.
func (d Decision) Explain(w io.Writer) error {
	_, err := io.WriteString(w, d.explanation())
	return err
}

func (d Decision) explanation() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", d.Verdict, d.Reason)
	fmt.Fprintf(&b, "  decided by %s\n", strings.Join(d.Rules, ", "))
	if d.Grant != "" {
		fmt.Fprintf(&b, "  allowed by grant %s\n", d.Grant)
	}
	if d.Requirement != nil {
		explainRequirement(&b, d.Requirement)
	}
	if d.DryRunVerdict != "" {
		fmt.Fprintf(&b, "  the dry-run rules would change it to %s\n", d.DryRunVerdict)
	}
	b.WriteString("rules:\n")
	for _, t := range d.Trace {
		t.explain(&b)
	}
	if d.OtherToolRules > 0 {
		fmt.Fprintf(&b, "  %d more rules for other tools\n", d.OtherToolRules)
	}
	for i, charge := range d.Charges {
		if i == 0 {
			b.WriteString("if executed:\n")
		}
		fmt.Fprintf(&b, "  +%d to %s\n", charge.Amount, charge.Counter)
	}
	fmt.Fprintf(&b, "policy %s", d.Policy)
	if d.Version != "" {
		fmt.Fprintf(&b, " (%s)", d.Version)
	}
	fmt.Fprintf(&b, "\ninput  %s\n", d.Input)
	return b.String()
}

func explainRequirement(b *strings.Builder, r *Requirement) {
	for _, group := range r.Groups {
		fmt.Fprintf(b, "  needs %s\n", group)
	}
	explainList(b, "excluded by separation of duties", r.Exclude)
	if r.Deadline > 0 {
		fmt.Fprintf(b, "  within %s, then %s\n", r.Deadline, r.OnTimeout)
	}
	if r.MinAuth != "" {
		fmt.Fprintf(b, "  authenticated with at least %s\n", r.MinAuth)
	}
	if r.DenyCount > 1 {
		fmt.Fprintf(b, "  %d rejections close the request\n", r.DenyCount)
	}
	if r.OnEscalate == requirement.EscalateReturns {
		b.WriteString("  an escalation returns the request to the run\n")
	}
	for _, audience := range r.VisibleTo {
		fmt.Fprintf(b, "  visible only to %s\n", strings.Join(audience, " or "))
	}
	explainList(b, "routes", r.Routes)
	explainList(b, "editable arguments", r.Editable)
	explainList(b, "reasons for edits", r.EditReasons)
	explainList(b, "reasons for rejections", r.RejectReasons)
	explainList(b, "masked", r.Sensitive)
	if r.IsTyped() {
		explainList(b, "typed by an approver", r.Confirm)
	}
	explainList(b, "allowed verbs", r.Verbs)
	if r.Undo > 0 {
		fmt.Fprintf(b, "  takes effect %s after the last vote, which can be withdrawn until then\n", r.Undo)
	}
	if r.RememberMax > 0 {
		fmt.Fprintf(b, "  can be remembered for %s\n", r.RememberMax)
	}
}

func explainList[T ~string](b *strings.Builder, label string, names []T) {
	for i, name := range names {
		if i == 0 {
			fmt.Fprintf(b, "  %s: %s", label, name)
		} else {
			fmt.Fprintf(b, ", %s", name)
		}
	}
	if len(names) > 0 {
		b.WriteByte('\n')
	}
}

func (t Trace) explain(b *strings.Builder) {
	fmt.Fprintf(b, "  %-5s %-5s %s", t.Outcome, t.Then, t.Rule)
	if t.DryRun {
		b.WriteString(" (dry run)")
	}
	if l := t.Limit; l != nil {
		fmt.Fprintf(b, " [%d + %d of %d in %s]", l.Used, l.Adds, l.Max, l.Window)
	}
	if t.Error != "" {
		fmt.Fprintf(b, ": %s", t.Error)
		if t.counts() {
			b.WriteString("; counts as a hit")
		}
	}
	fmt.Fprintf(b, " cost=%d\n", t.Cost)
}
