package policy

import (
	"errors"
	"fmt"
	"strings"
)

// ErrInput means that an input is invalid, for example because its arguments are ambiguous JSON. No
// rule was evaluated, and the caller must not execute the action.
var ErrInput = errors.New("policy: invalid input")

// ErrNoSet means that a [LiveSet] has not loaded a set yet. No decision is possible.
var ErrNoSet = errors.New("policy: no rules are loaded")

// Problem is an error or a warning in a rule file.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	// Rule is the id of the rule, or "" outside of rules.
	Rule string `json:"rule,omitempty"`
	Text string `json:"text"`
}

// String formats the problem as compilers do, so that editors find the line.
func (p Problem) String() string {
	if p.Rule == "" {
		return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
	}
	return fmt.Sprintf("%s:%d: rule %q: %s", p.File, p.Line, p.Rule, p.Text)
}

// LoadError lists all errors of a file that could not be loaded. Nothing of the file is in use.
type LoadError struct{ Problems []Problem }

func (e *LoadError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return "policy: load failed:\n" + strings.Join(lines, "\n")
}
