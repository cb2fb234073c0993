package policy

import (
	"encoding/json"
	"iter"
	"slices"

	"cel.dev/cel-go/cel"
)

// DefaultRule is how a decision and a grant call what decides when no rule does.
const DefaultRule = "default"

// Rule is one rule of a [Set], as it was written.
type Rule struct {
	ID     string  `json:"id"`
	When   string  `json:"when"`
	Then   Verdict `json:"then"`
	Reason string  `json:"reason,omitempty"`
	// DryRun says that the rule is judged and traced, and does not count.
	DryRun bool `json:"dryRun,omitempty"`
	// Ask is what a rule that asks demands, with the defaults filled in.
	Ask *Requirement `json:"ask,omitempty"`
	// Limit makes it a rule about how much or how often.
	Limit *Limit `json:"limit,omitempty"`
	// Line is where it stands in the file.
	Line int `json:"-"`
}

// rule is a Rule that can be judged.
type rule struct {
	Rule
	digest        string
	when          cel.Program
	amount        cel.Program // nil if actions are counted
	info          exprInfo
	limitTemplate queryTemplate // singleRule with a Limit
}

// shapes are the numbers that the rule needs: what its expressions count, and then its limit.
func (r *rule) queryTemplates() iter.Seq[queryTemplate] {
	return func(yield func(queryTemplate) bool) {
		for _, count := range r.info.counts {
			if !yield(count) {
				return
			}
		}
		if r.Limit != nil {
			yield(r.limitTemplate)
		}
	}
}

func (r Rule) clone() Rule {
	if r.Ask != nil {
		r.Ask = r.Ask.clone()
	}
	if r.Limit != nil {
		limit := *r.Limit
		limit.By = slices.Clone(limit.By)
		r.Limit = &limit
	}
	return r
}

// digestOfRule changes with everything that a rule says but its words for people.
func digestOfRule(r Rule) string {
	r.Reason = ""
	text, err := json.Marshal(r)
	if err != nil {
		return "" // cannot happen: a rule is plain data. An empty digest never equals that of a grant.
	}
	return digestOf(text)[:len("sha256:")+16]
}
