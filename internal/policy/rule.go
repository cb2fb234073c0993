package policy

import (
	"encoding/json"
	"iter"
	"slices"

	"cel.dev/cel-go/cel"
)

// DefaultRule is the rule id of the default in decisions and grants.
const DefaultRule = "default"

// Rule is one rule of a [Set], as written.
type Rule struct {
	ID     string  `json:"id"`
	When   string  `json:"when"`
	Then   Verdict `json:"then"`
	Reason string  `json:"reason,omitempty"`
	// DryRun reports that the rule is evaluated and traced but does not count.
	DryRun bool `json:"dryRun,omitempty"`
	// Ask is the requirement of a rule that asks, including the defaults.
	Ask *Requirement `json:"ask,omitempty"`
	// Limit makes it a rule about an amount or a number of actions.
	Limit *Limit `json:"limit,omitempty"`
	// Line is the line in the file.
	Line int `json:"-"`
}

// rule is a compiled Rule.
type rule struct {
	Rule
	digest        string
	when          cel.Program
	amount        cel.Program // nil if actions are counted
	info          exprInfo
	limitTemplate queryTemplate // only with a Limit
}

// queryTemplates returns the counters that the rule needs: those of its expressions, then its
// limit.
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
		r.Ask = r.Ask.Clone()
	}
	if r.Limit != nil {
		limit := *r.Limit
		limit.By = slices.Clone(limit.By)
		r.Limit = &limit
	}
	return r
}

// digestOfRule returns a digest of everything in a rule except its reason.
func digestOfRule(r Rule) string {
	r.Reason = ""
	text, err := json.Marshal(r)
	if err != nil {
		return "" // cannot happen: a rule is plain data; an empty digest never matches a grant
	}
	return digestOf(text)[:len("sha256:")+16]
}
