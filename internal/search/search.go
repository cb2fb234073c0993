// Package search parses searches of requests. A search is a list of words and operators, and a
// request must match all of them:
//
//	tool:refund age:>1h -is:claimed "order 17"
//
// A minus sign excludes what matches. Quotes keep spaces and colons together.
package search

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/suggest"
)

// MaxLen is the maximum length of a search in bytes, and maxConditions the maximum number of its
// words and operators.
const (
	MaxLen        = 500
	maxConditions = 20
)

// The states of requests.
const (
	Pending   = "pending"
	Decided   = "decided"
	Withdrawn = "withdrawn"
)

// Request has the values of a request that a search looks at. They are those that the caller may
// see.
type Request struct {
	ID, Kind, Graph, Run, Tool, Requester string
	// Risk is high, medium, low or none.
	Risk          string
	Rules, Groups []string
	// State is one of the states of this package.
	State                          string
	Created, Deadline, SnoozedTill time.Time
	ClaimedBy, DecidedBy           string
	// Eligible reports that the caller may decide the request and has not yet, and InGroups that it
	// asks one of the caller's groups.
	Eligible, InGroups bool
	// Data is JSON.
	Data []byte
}

// Query is a parsed search. The zero value matches everything.
type Query struct {
	conditions []condition
}

type condition struct {
	operator, value string // a word has no operator
	excluded        bool
	match           func(r *Request, now time.Time) bool
}

// Parse parses a search. The error names the operator or value that is wrong, and the one that may
// be meant.
func Parse(text string) (Query, error) {
	if len(text) > MaxLen {
		return Query{}, fmt.Errorf("the search has %d bytes; at most %d are allowed", len(text), MaxLen)
	}
	tokens, err := split(text)
	if err != nil {
		return Query{}, err
	}
	if len(tokens) > maxConditions {
		return Query{}, fmt.Errorf("the search has %d words; at most %d are allowed", len(tokens), maxConditions)
	}
	var q Query
	for _, t := range tokens {
		c := condition{operator: t.operator, value: t.value, excluded: t.excluded}
		if c.operator == "" {
			c.match = hasWord(c.value)
		} else if c.match, err = parseOperator(t); err != nil {
			return Query{}, err
		}
		q.conditions = append(q.conditions, c)
	}
	return q, nil
}

func parseOperator(t token) (func(*Request, time.Time) bool, error) {
	at := slices.IndexFunc(operators, func(o Operator) bool {
		return o.Name == strings.ToLower(t.operator) || slices.Contains(o.aliases, strings.ToLower(t.operator))
	})
	if at < 0 {
		names := Names()
		if near := suggest.Closest(t.operator, names, len(t.operator)/3+1); near != "" {
			return nil, fmt.Errorf("unknown operator %q; did you mean %q?", t.operator+":", near+":")
		}
		return nil, fmt.Errorf("unknown operator %q; known: %s. To search for the text, put it in quotes", t.operator+":", strings.Join(names, ": ")+":")
	}
	o := operators[at]
	if t.value == "" {
		return nil, fmt.Errorf("%q needs a value, for example %s", o.Name+":", o.Example)
	}
	match, err := o.parse(t.value)
	if err != nil {
		return nil, fmt.Errorf("%s:%s: %w", o.Name, t.value, err)
	}
	return match, nil
}

// Match reports whether a request matches all conditions.
func (q Query) Match(r Request, now time.Time) bool {
	for _, c := range q.conditions {
		if c.match(&r, now) == c.excluded {
			return false
		}
	}
	return true
}

// IsEmpty reports whether the search has no condition.
func (q Query) IsEmpty() bool { return len(q.conditions) == 0 }

// State returns the state that all matching requests have. It is "" with named if the search names
// a state in another way, and "" without named if it does not mention states.
func (q Query) State() (state string, named bool) {
	for _, c := range q.conditions {
		if c.operator != "is" || isStates[strings.ToLower(c.value)] == "" {
			continue
		}
		if named = true; !c.excluded {
			return isStates[strings.ToLower(c.value)], true
		}
	}
	return "", named
}

// Exact returns the value that all matching requests have: of kind, run or id. It is "" if the
// search does not say, or if it has a wildcard.
func (q Query) Exact(operator string) string {
	for _, c := range q.conditions {
		if c.operator == operator && !c.excluded && !strings.Contains(c.value, wildcard) {
			return c.value
		}
	}
	return ""
}

// Created returns the time after which, and the time before which, all matching requests were
// created. A zero time means no bound.
func (q Query) Created(now time.Time) (after, before time.Time) {
	for _, c := range q.conditions {
		span, older, ok := ageOf(c)
		switch at := now.Add(-span); {
		case !ok:
		case older && (before.IsZero() || at.Before(before)):
			before = at
		case !older && at.After(after):
			after = at
		}
	}
	return after, before
}

// hasWord matches a text anywhere in a request.
func hasWord(word string) func(*Request, time.Time) bool {
	word = strings.ToLower(word)
	return func(r *Request, _ time.Time) bool {
		for _, text := range []string{r.ID, r.Kind, r.Graph, r.Run, r.Tool, r.Requester} {
			if strings.Contains(strings.ToLower(text), word) {
				return true
			}
		}
		return strings.Contains(strings.ToLower(plain(r.Data)), word)
	}
}

// plain returns JSON with its strings decoded, if any of them is escaped.
func plain(data []byte) string {
	if !slices.Contains(data, '\\') {
		return string(data)
	}
	var text strings.Builder
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	for {
		t, err := decoder.Token()
		if err != nil { // the end, or not JSON
			return text.String()
		}
		fmt.Fprintf(&text, "%v\n", t)
	}
}
