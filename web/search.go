package web

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/untrusted"
)

// operatorExamples are offered while people type.
var operatorExamples = []string{"tool:", "kind:", "rule:", "run:", "graph:", "from:", "risk:high", "age:>1h", "left:<1h"}

// search is a parsed search: every condition must hold.
type search struct {
	conditions []func(m *requestModel, now time.Time) bool
}

// parseSearch parses words and operators such as tool:refund or age:>1h.
func parseSearch(query string) (search, error) {
	var s search
	for _, word := range strings.Fields(query) {
		name, value, ok := strings.Cut(word, ":")
		if !ok || value == "" && slices.Contains(operatorExamples, word) {
			if ok { // an operator without a value
				continue
			}
			s.conditions = append(s.conditions, contains(word))
			continue
		}
		condition, err := operator(name, value)
		if err != nil {
			return s, err
		}
		s.conditions = append(s.conditions, condition)
	}
	return s, nil
}

func (s search) matches(m *requestModel, now time.Time) bool {
	return !slices.ContainsFunc(s.conditions, func(c func(*requestModel, time.Time) bool) bool { return !c(m, now) })
}

// contains finds a word anywhere in a request.
func contains(word string) func(*requestModel, time.Time) bool {
	word = strings.ToLower(word)
	return func(m *requestModel, _ time.Time) bool {
		all := strings.Join([]string{m.ID, m.Kind, m.GraphID, m.StateKey, m.From, untrusted.Plain(string(m.Data))}, "\n")
		return strings.Contains(strings.ToLower(all), word)
	}
}

func operator(name, value string) (func(*requestModel, time.Time) bool, error) {
	has := func(text string) bool { return strings.Contains(strings.ToLower(text), strings.ToLower(value)) }
	switch name {
	case "tool":
		return func(m *requestModel, _ time.Time) bool { return has(m.tool()) }, nil
	case "kind":
		return func(m *requestModel, _ time.Time) bool { return has(m.Kind) }, nil
	case "run":
		return func(m *requestModel, _ time.Time) bool { return has(m.StateKey) }, nil
	case "graph":
		return func(m *requestModel, _ time.Time) bool { return has(m.GraphID) }, nil
	case "from":
		return func(m *requestModel, _ time.Time) bool { return has(m.From) }, nil
	case "rule":
		return func(m *requestModel, _ time.Time) bool {
			return m.Activity != nil && slices.ContainsFunc(m.Activity.Rules, has)
		}, nil
	case "risk":
		return func(m *requestModel, _ time.Time) bool { return m.Risk == strings.ToLower(value) }, nil
	case "age", "left":
		return duration(name, value)
	}
	return nil, fmt.Errorf("unknown operator %q: use %s", name, strings.Join(operatorExamples, " "))
}

// duration parses age:>1h and left:<30m.
func duration(name, value string) (func(*requestModel, time.Time) bool, error) {
	more := strings.HasPrefix(value, ">")
	if !more && !strings.HasPrefix(value, "<") {
		return nil, fmt.Errorf("%s:%s: write %[1]s:>1h or %[1]s:<1h", name, value)
	}
	limit, err := parseSpan(value[1:])
	if err != nil {
		return nil, fmt.Errorf("%s:%s: %w", name, value, err)
	}
	return func(m *requestModel, now time.Time) bool {
		span := now.Sub(m.CreatedAt)
		if name == "left" {
			if m.Deadline == nil {
				return more
			}
			span = m.Deadline.Sub(now)
		}
		return more == (span > limit)
	}, nil
}

// parseSpan parses a duration, also with days.
func parseSpan(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < 0 || n > 36500 {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 30m, 2h or 3d", text)
	}
	return d, nil
}

// tool returns the action that a request is about; "" if it is about none.
func (m *requestModel) tool() string {
	switch {
	case m.Approval != nil:
		return m.Approval.Action
	case m.Doubt != nil:
		return m.Doubt.Action
	}
	return ""
}
