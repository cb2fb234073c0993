package policy

import (
	"errors"
	"fmt"
	"strings"
)

// ErrInput means that an input cannot be judged, as when its arguments are no JSON with one meaning. No rule was asked;
// whoever calls must not let the action through.
var ErrInput = errors.New("policy: the input cannot be judged")

// ErrNoSet means that a [LiveSet] has no rules yet, because none could be loaded. Nothing can be decided.
var ErrNoSet = errors.New("policy: no rules are loaded")

// Problem is one thing that is wrong, or doubtful, in a file of rules.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Rule is the id of the rule in which it is; "" if it is in none.
	Rule string `json:"rule,omitempty"`
	Text string `json:"text"`
}

// String is the problem as compilers write it, so that editors find the line.
func (p Problem) String() string {
	if p.Rule == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	}
	return fmt.Sprintf("%s:%d: rule %q: %s", p.File, p.Line, p.Rule, p.Text)
}

// LoadError lists everything that keeps a file from being loaded. Nothing of the file is in use.
type LoadError struct{ Problems []Problem }

func (e *LoadError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return "policy: not loaded:\n" + strings.Join(lines, "\n")
}
