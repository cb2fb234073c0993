package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// many is rules of one sort, as many as fit into so many bytes.
func many(bytes int, rule func(n int) string) string {
	var text strings.Builder
	text.WriteString("default: deny\nrules:\n")
	for n := 0; text.Len() < bytes; n++ {
		text.WriteString("- {" + rule(n) + "}\n")
	}
	return text.String()
}

func replayOf(t *testing.T, rules string) string {
	t.Helper()
	return `{"policy":` + asJSON(t, rules) + `,"seconds":3600}`
}

// Rules that are no rules get an answer that somebody can read, and not one for each of ten thousand mistakes.
func TestAttack_MistakesDoNotComeBackByTheMegabyte(t *testing.T) {
	s := openDesk(t)
	for name, rules := range map[string]string{
		"without anything": many(100_000, func(n int) string { return fmt.Sprint("id: r", n) }),
		"a long word":      many(10, func(int) string { return "id: r, when: 'true', then: " + strings.Repeat("d", 400_000) }),
		"keys":             many(10, func(int) string { return strings.Repeat("k: 1, ", 50_000) + "id: r" }),
	} {
		got := s.call("auditor@acme", "POST", "/api/v1/policies/replay", replayOf(t, rules))
		if got.status != 400 || len(got.body) > 32<<10 || len(got.body) < 100 {
			t.Errorf("%s: %d with %d bytes", name, got.status, len(got.body))
		}
	}
}

// Rules that look at the past in thousands of ways would take days for what an account did in an hour.
func TestAttack_RulesThatWouldTakeDaysAreNotReplayed(t *testing.T) {
	s := openDesk(t)
	s.chat("agent@acme", startDrop)
	for name, rules := range map[string]string{
		"counts": many(100_000, func(n int) string {
			return fmt.Sprintf(`id: r%d, when: 'history.count("tool","%ds")>1', then: deny`, n, n+1)
		}),
		"limits": many(100_000, func(n int) string {
			return fmt.Sprintf("id: r%d, when: 'true', then: deny, limit: {max: 1, window: 1h}", n)
		}),
	} {
		if got := s.call("auditor@acme", "POST", "/api/v1/policies/replay", replayOf(t, rules)); got.status != 400 || !strings.Contains(got.body, "rules") {
			t.Errorf("%s: %d %.200s", name, got.status, got.body)
		}
	}
}
