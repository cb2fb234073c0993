package compat

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// humanTexts are the JSON keys of texts for people, which may change. A key with a dot counts only
// directly below the other key. The keys must still exist and hold a text.
var humanTexts = []string{"title", "detail", "message", "summary", "description", "progress", "history.text", "examples.what"}

// measured are the JSON keys of durations that depend on timing, and how much they may differ.
var measured = map[string]float64{"oldestOpenSeconds": 1, "p50": 1, "p90": 1, "p99": 1, "waitedHours": 0.01}

// timeTolerance is how far a time may be from the recorded one, counted from the start of the
// bubble.
const timeTolerance = 5 * time.Second

// bubbleStart is the time at which a synctest bubble starts.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

var (
	placeholder      = regexp.MustCompile(`<[a-z]+:[0-9]+>`)
	wholeTime        = regexp.MustCompile(`^<time:\+(-?[0-9]+)s>$`)
	numberWildcard   = "<number>"
	wholePlaceholder = regexp.MustCompile(`^<[a-z]+:[0-9]+>$`)
)

// A comparer compares responses with recorded ones. It learns what the placeholders stand for.
type comparer struct {
	texts       []string // humanTexts, with their current names too
	measured    map[string]float64
	unordered   []string          // keys of lists without an order
	values      map[string]string // by placeholder
	changes     changes
	differences []string
}

func newComparer(r renames) *comparer {
	c := &comparer{texts: slices.Clone(humanTexts), measured: maps.Clone(measured), values: make(map[string]string)}
	for key, tolerance := range measured {
		c.measured[r.name(renameKey, nil, key)] = tolerance
	}
	for _, text := range humanTexts {
		keys := strings.Split(text, ".")
		for i, key := range keys {
			keys[i] = r.name(renameKey, nil, key)
		}
		c.texts = append(c.texts, strings.Join(keys, "."))
	}
	return c
}

// expand puts values in the place of placeholders.
func (c *comparer) expand(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := c.values[name]; ok {
			return value
		}
		return name
	})
}

// expandAll does so in all strings and keys of a JSON value.
func (c *comparer) expandAll(value any) any {
	switch v := value.(type) {
	case string:
		if m := wholeTime.FindStringSubmatch(v); m != nil {
			return timeOf(m[1]).Format(time.RFC3339)
		}
		return c.expand(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = c.expandAll(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key := range v {
			out[c.expand(key)] = c.expandAll(v[key])
		}
		return out
	}
	return value
}

func timeOf(seconds string) time.Time {
	n, _ := strconv.Atoi(seconds)
	return bubbleStart.Add(time.Duration(n) * time.Second)
}

// compare notes all differences between a recorded response and another one.
func (c *comparer) compare(want, got response) {
	if want.Status != got.Status {
		c.differ("status", want.Status, got.Status)
	}
	if want.ContentType != got.ContentType {
		c.differ("content type", want.ContentType, got.ContentType)
	}
	if want.ContentType == "text/html" || want.ContentType == "text/plain" {
		return // texts for people
	}
	c.value(nil, want.Body, got.Body)
}

func (c *comparer) differ(where string, want, got any) {
	if c.changes.cover(where, want, got) {
		return
	}
	c.differences = append(c.differences, fmt.Sprintf("%s: recorded %.300s, got %.300s", where, jsonText(want), jsonText(got)))
}

func jsonText(value any) string {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (c *comparer) value(path []string, want, got any) {
	switch want := want.(type) {
	case map[string]any:
		if got, ok := got.(map[string]any); ok {
			c.object(path, want, got)
			return
		}
	case []any:
		if got, ok := got.([]any); ok {
			c.list(path, want, got)
			return
		}
	case string:
		if want == numberWildcard {
			if _, ok := got.(json.Number); ok {
				return
			}
		} else if got, ok := got.(string); ok {
			c.text(path, want, got)
			return
		}
	case json.Number:
		if got, ok := got.(json.Number); ok && (want == got || c.isClose(path, want, got)) {
			return
		}
	default:
		if want == got { // bool, nil
			return
		}
	}
	c.differ(strings.Join(path, "."), want, got)
}

// isClose reports whether a measured number differs little enough.
func (c *comparer) isClose(path []string, want, got json.Number) bool {
	if len(path) == 0 {
		return false
	}
	tolerance, ok := c.measured[path[len(path)-1]]
	a, errA := want.Float64()
	b, errB := got.Float64()
	return ok && errA == nil && errB == nil && math.Abs(a-b) <= tolerance
}

func (c *comparer) object(path []string, want, got map[string]any) {
	known := make(map[string]bool)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		name := c.expand(key)
		known[name] = true
		if value, ok := got[name]; ok {
			c.value(append(slices.Clone(path), name), want[key], value)
		} else {
			c.differ(strings.Join(append(slices.Clone(path), name), "."), want[key], "<missing>")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if !known[name] {
			c.differ(strings.Join(append(slices.Clone(path), name), "."), "<missing>", got[name])
		}
	}
}

func (c *comparer) list(path []string, want, got []any) {
	if len(want) != len(got) {
		c.differ(strings.Join(path, ".")+" (length)", want, got)
		return
	}
	key := ""
	if len(path) > 0 {
		key = path[len(path)-1]
	}
	if slices.Contains(c.unordered, key) {
		got = c.arrange(path, want, got)
	}
	for i := range want {
		c.value(append(slices.Clone(path), strconv.Itoa(i)), want[i], got[i])
	}
}

// arrange puts elements into the order of the recorded ones that they are equal to. It returns the
// list as it is if there is no such order.
func (c *comparer) arrange(path []string, want, got []any) []any {
	rest, arranged := slices.Clone(got), []any{}
	trial := &comparer{texts: c.texts, measured: c.measured, unordered: c.unordered, changes: c.changes, values: maps.Clone(c.values)}
	for _, element := range want {
		i := slices.IndexFunc(rest, func(candidate any) bool {
			before := maps.Clone(trial.values)
			trial.differences = nil
			trial.value(append(slices.Clone(path), "0"), element, candidate)
			if len(trial.differences) > 0 {
				trial.values = before
			}
			return len(trial.differences) == 0
		})
		if i < 0 {
			return got
		}
		arranged, rest = append(arranged, rest[i]), slices.Delete(rest, i, i+1)
	}
	return arranged
}

func (c *comparer) text(path []string, want, got string) {
	if c.isHumanText(path) && (want == "") == (got == "") {
		return
	}
	if m := wholeTime.FindStringSubmatch(want); m != nil {
		at, err := time.Parse(time.RFC3339Nano, got)
		if err != nil || at.Sub(timeOf(m[1])).Abs() > timeTolerance {
			c.differ(strings.Join(path, "."), timeOf(m[1]), got)
		}
		return
	}
	if wholePlaceholder.MatchString(want) {
		if known, ok := c.values[want]; !ok {
			c.values[want] = got
			return
		} else if known != got {
			c.differ(strings.Join(path, "."), want+" = "+known, got)
		}
		return
	}
	if want != got {
		c.differ(strings.Join(path, "."), want, got)
	}
}

// isHumanText reports whether a place holds a text for people. Indexes of lists do not count.
func (c *comparer) isHumanText(path []string) bool {
	keys := slices.DeleteFunc(slices.Clone(path), func(key string) bool {
		_, err := strconv.Atoi(key)
		return err == nil
	})
	for _, text := range c.texts {
		parts := strings.Split(text, ".")
		if len(keys) >= len(parts) && slices.Equal(keys[len(keys)-len(parts):], parts) {
			return true
		}
	}
	return false
}
