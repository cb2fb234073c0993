package config

import (
	"fmt"
	"strings"
)

// InvalidError lists all mistakes of a configuration. None of it is applied.
type InvalidError struct{ Mistakes []Mistake }

// Mistake is one error in a configuration.
type Mistake struct {
	// Where is the file with the line, the variable or the flag; "" if the value is missing.
	Where string `json:"where,omitempty"`
	// Key is the key, if the mistake is about one.
	Key     string `json:"key,omitempty"`
	Message string `json:"message"`
}

func (m Mistake) String() string {
	text := m.Message
	if m.Key != "" {
		text = m.Key + ": " + text
	}
	if m.Where != "" {
		text = m.Where + ": " + text
	}
	return text
}

// Error has one line per mistake.
func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Mistakes))
	for i, m := range e.Mistakes {
		lines[i] = m.String()
	}
	return strings.Join(lines, "\n")
}

// mistakes collects mistakes.
type mistakes []Mistake

func (m *mistakes) add(where, key, format string, args ...any) {
	*m = append(*m, Mistake{Where: where, Key: key, Message: fmt.Sprintf(format, args...)})
}

func (m mistakes) err() error {
	if len(m) == 0 {
		return nil
	}
	return &InvalidError{Mistakes: m}
}
