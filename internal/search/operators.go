package search

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/internal/suggest"
)

// Operator is an operator of searches.
type Operator struct {
	Name, Example string

	aliases []string
	parse   func(value string) (func(*Request, time.Time) bool, error)
}

// Operators returns all operators.
func Operators() []Operator { return slices.Clone(operators) }

// Names returns the names of all operators.
func Names() []string {
	names := make([]string, len(operators))
	for i, o := range operators {
		names[i] = o.Name
	}
	return names
}

var operators = []Operator{
	{Name: "is", Example: "is:mine", parse: parseIs},
	{Name: "tool", Example: "tool:refund", parse: contains(func(r *Request) []string { return []string{r.Tool} })},
	{Name: "kind", Example: "kind:approval", parse: exactly(func(r *Request) string { return r.Kind })},
	{Name: "graph", Example: "graph:refunds", parse: contains(func(r *Request) []string { return []string{r.Graph} })},
	{Name: "run", Example: "run:demo-1", parse: exactly(func(r *Request) string { return r.Run })},
	{Name: "requester", Example: "requester:ann", aliases: []string{"from"}, parse: contains(func(r *Request) []string { return []string{r.Requester} })},
	{Name: "group", Example: "group:finance", parse: contains(func(r *Request) []string { return r.Groups })},
	{Name: "rule", Example: "rule:big", parse: contains(func(r *Request) []string { return r.Rules })},
	{Name: "risk", Example: "risk:high", parse: parseRisk},
	{Name: "by", Example: "by:ann", parse: contains(func(r *Request) []string { return []string{r.DecidedBy} })},
	{Name: "claimed", Example: "claimed:bob", parse: contains(func(r *Request) []string { return []string{r.ClaimedBy} })},
	{Name: "age", Example: "age:>1h", parse: parseAge},
	{Name: "older", Example: "older:2d", parse: func(value string) (func(*Request, time.Time) bool, error) { return parseAge(">" + value) }},
	{Name: "newer", Example: "newer:2d", parse: func(value string) (func(*Request, time.Time) bool, error) { return parseAge("<" + value) }},
	{Name: "left", Example: "left:<1h", parse: parseLeft},
	{Name: "id", Example: "id:int_1", parse: exactly(func(r *Request) string { return r.ID })},
}

// contains matches a part of one of the values, in upper or lower case.
func contains(values func(*Request) []string) func(string) (func(*Request, time.Time) bool, error) {
	return func(part string) (func(*Request, time.Time) bool, error) {
		part = strings.ToLower(part)
		return func(r *Request, _ time.Time) bool {
			return slices.ContainsFunc(values(r), func(value string) bool { return strings.Contains(strings.ToLower(value), part) })
		}, nil
	}
}

// wildcard matches any text.
const wildcard = "*"

// exactly matches a whole value, in which a wildcard matches any text.
func exactly(of func(*Request) string) func(string) (func(*Request, time.Time) bool, error) {
	return func(pattern string) (func(*Request, time.Time) bool, error) {
		parts := strings.Split(pattern, wildcard)
		return func(r *Request, _ time.Time) bool { return matchParts(of(r), parts) }, nil
	}
}

// matchParts reports whether a text consists of the parts, with any text between them.
func matchParts(text string, parts []string) bool {
	if len(parts) == 1 {
		return text == parts[0]
	}
	text, ok := strings.CutPrefix(text, parts[0])
	if !ok {
		return false
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = after
	}
	return strings.HasSuffix(text, parts[last])
}

// isStates are the values of is: that name a state.
var isStates = map[string]string{"open": Pending, "pending": Pending, "decided": Decided, "done": Decided, "withdrawn": Withdrawn}

var isValues = []string{"open", "decided", "withdrawn", "mine", "groups", "snoozed", "claimed"}

func parseIs(value string) (func(*Request, time.Time) bool, error) {
	value = strings.ToLower(value)
	if state := isStates[value]; state != "" {
		return func(r *Request, _ time.Time) bool { return r.State == state }, nil
	}
	switch value {
	case "mine":
		return func(r *Request, now time.Time) bool {
			return r.State == Pending && r.Eligible && !r.SnoozedTill.After(now)
		}, nil
	case "groups":
		return func(r *Request, _ time.Time) bool { return r.State == Pending && r.InGroups }, nil
	case "snoozed":
		return func(r *Request, now time.Time) bool { return r.State == Pending && r.SnoozedTill.After(now) }, nil
	case "claimed":
		return func(r *Request, _ time.Time) bool { return r.ClaimedBy != "" }, nil
	}
	return nil, oneOf(value, isValues)
}

var risks = []string{"high", "medium", "low", "none"}

func parseRisk(value string) (func(*Request, time.Time) bool, error) {
	value = strings.ToLower(value)
	if !slices.Contains(risks, value) {
		return nil, oneOf(value, risks)
	}
	return func(r *Request, _ time.Time) bool { return r.Risk == value }, nil
}

func oneOf(value string, known []string) error {
	if near := suggest.Closest(value, known, len(value)/3+1); near != "" {
		return fmt.Errorf("did you mean %q?", near)
	}
	return fmt.Errorf("use one of %s", strings.Join(known, ", "))
}

func parseAge(value string) (func(*Request, time.Time) bool, error) {
	span, more, err := parseSpan("age", value)
	return func(r *Request, now time.Time) bool { return more == (now.Sub(r.Created) > span) }, err
}

// parseLeft matches the time until the deadline. A request without a deadline has any time left.
func parseLeft(value string) (func(*Request, time.Time) bool, error) {
	span, more, err := parseSpan("left", value)
	return func(r *Request, now time.Time) bool {
		if r.Deadline.IsZero() {
			return more
		}
		return more == (r.Deadline.Sub(now) > span)
	}, err
}

// ageOf returns the age that a condition is about, and whether it is about older requests.
func ageOf(c condition) (span time.Duration, older, ok bool) {
	value := c.value
	switch c.operator {
	case "older":
		value = ">" + value
	case "newer":
		value = "<" + value
	case "age":
	default:
		return 0, false, false
	}
	span, older, err := parseSpan("age", value)
	return span, older != c.excluded, err == nil
}

// parseSpan parses >1h and <3d.
func parseSpan(operator, value string) (span time.Duration, more bool, err error) {
	text, more := strings.CutPrefix(value, ">")
	if !more {
		var less bool
		if text, less = strings.CutPrefix(value, "<"); !less {
			return 0, false, fmt.Errorf("write %s:>1h or %[1]s:<1h", operator)
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.Atoi(days); err == nil && n >= 0 && n <= 36500 {
			return time.Duration(n) * 24 * time.Hour, more, nil
		}
	} else if span, err = time.ParseDuration(text); err == nil && span >= 0 {
		return span, more, nil
	}
	return 0, false, fmt.Errorf("%q is not a duration such as 30m, 2h or 3d", text)
}
