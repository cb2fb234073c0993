package policy

import (
	"fmt"
	"io"
	"strings"

	"github.com/fermata-go/fermata"
)

// Decision is what a set says of an input, and all that is needed to see why. The same set and the same input give the same
// decision, byte for byte.
type Decision struct {
	Verdict Verdict `json:"verdict"`
	// Rules are the ids of the rules that decided, in the order of the file; only [DefaultRule] if none did.
	Rules []string `json:"rules"`
	// Reason says why, in words for the person who is asked and for the agent that is refused.
	Reason string `json:"reason"`
	// Need is what an ask demands; nil with any other verdict.
	Requirement *Requirement `json:"need,omitempty"`
	// Policy and Version name the set, Input the input, by their digests.
	Policy  string `json:"policy"`
	Version string `json:"version,omitempty"`
	Input   string `json:"input"`
	// Trace has every rule that could have hit, in the order of the file. Elsewhere counts the rules for other tools.
	Trace          []Trace `json:"trace"`
	OtherToolRules int     `json:"elsewhere,omitempty"`
	// Rehearsed is the verdict as it would be if the dry-run rules counted, where it differs.
	DryRunVerdict Verdict `json:"rehearsed,omitempty"`
	// Charges are what the action adds to the counters if it goes ahead.
	Charges []Charge `json:"charges,omitempty"`
	// Grant is the id of the grant that lifted an ask, if one did. Rules never set it.
	Grant string `json:"grant,omitempty"`
}

// RuleOutcome is what became of one rule.
type RuleOutcome string

// The outcomes. A rule that could not be judged counts as a hit if it asks or denies, and as a miss if it allows.
const (
	RuleHit    RuleOutcome = "hit"
	RuleMiss   RuleOutcome = "miss"
	RuleFailed RuleOutcome = "error"
)

// Trace says what became of one rule.
type Trace struct {
	Rule string `json:"rule"`
	// Digest changes when the rule does. A grant holds only for the rules it was given under.
	Digest  string      `json:"digest"`
	Then    Verdict     `json:"then"`
	Outcome RuleOutcome `json:"outcome"`
	// Error says why the rule could not be judged. It never holds a value of the arguments.
	Error  string `json:"error,omitempty"`
	DryRun bool   `json:"dryRun,omitempty"`
	// Cost is in CEL's units.
	Cost uint64 `json:"cost"`
	// Limit has the numbers, for a rule with a limit that was looked at.
	Limit *LimitTrace `json:"limit,omitempty"`
}

// LimitTrace has the numbers behind the outcome of a limit.
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

// Ruling is the decision in the words of the root package.
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

// defaultDigest stands for the default's own demands.
func (d Decision) defaultDigest() string {
	return digestOfRule(Rule{ID: DefaultRule, Then: d.Verdict, Ask: d.Requirement})
}

// Explain writes the decision for people: the verdict, what it demands, and what became of each rule.
func (d Decision) Explain(w io.Writer) error {
	_, err := io.WriteString(w, d.explanation())
	return err
}

func (d Decision) explanation() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", d.Verdict, d.Reason)
	fmt.Fprintf(&b, "  decided by %s\n", strings.Join(d.Rules, ", "))
	if d.Grant != "" {
		fmt.Fprintf(&b, "  lifted by grant %s\n", d.Grant)
	}
	if d.Requirement != nil {
		d.Requirement.explain(&b)
	}
	if d.DryRunVerdict != "" {
		fmt.Fprintf(&b, "  with the dry-run rules it would be %s\n", d.DryRunVerdict)
	}
	b.WriteString("rules:\n")
	for _, t := range d.Trace {
		t.explain(&b)
	}
	if d.OtherToolRules > 0 {
		fmt.Fprintf(&b, "  and %d for other tools\n", d.OtherToolRules)
	}
	for i, charge := range d.Charges {
		if i == 0 {
			b.WriteString("if it goes ahead:\n")
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

func (r *Requirement) explain(b *strings.Builder) {
	for _, group := range r.Groups {
		fmt.Fprintf(b, "  needs %s\n", group)
	}
	if len(r.Exclude) > 0 {
		fmt.Fprintf(b, "  the yes of these does not count: %s\n", strings.Join(r.Exclude, ", "))
	}
	fmt.Fprintf(b, "  within %s, then %s\n", r.Deadline, r.OnTimeout)
	if r.MinAuth != "" {
		fmt.Fprintf(b, "  signed in with at least %s\n", r.MinAuth)
	}
	if r.DenyCount > 1 {
		fmt.Fprintf(b, "  %d people have to say no until it is a no\n", r.DenyCount)
	}
	for _, list := range []struct {
		say   string
		words []string
	}{{"by way of", r.Routes}, {"may be edited:", r.Editable}, {"must be shown:", r.Show}, {"people may:", r.Verbs}} {
		if len(list.words) > 0 {
			fmt.Fprintf(b, "  %s %s\n", list.say, strings.Join(list.words, ", "))
		}
	}
	if r.RememberMax > 0 {
		fmt.Fprintf(b, "  may be remembered for %s\n", r.RememberMax)
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
