package policy_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/fermata-go/fermata/internal/policy"
)

// denyRules returns a file with a deny rule for each condition.
func denyRules(n int, when func(i int) string) string {
	var b strings.Builder
	b.WriteString("default: allow\nrules:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {id: r%d, then: deny, when: %s}\n", i, quoted(when(i)))
	}
	return b.String()
}

// allocated returns how many bytes a function allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Compiled, each of these patterns needs several megabytes. They are counted, not compiled.
func TestLoad_LargePatternsAreNotCompiled(t *testing.T) {
	doc := denyRules(840, func(i int) string {
		return fmt.Sprintf(`args.s.matches("((%d|[a-z]x|[b-y]z|[c-x]u){1,31}){1,31}")`, i)
	})
	var err error
	used := allocated(func() { _, err = policy.Load("policy.yaml", []byte(doc), policy.Options{}) })
	failed, ok := errors.AsType[*policy.LoadError](err)
	if !ok || len(failed.Problems) != 840 || !strings.Contains(failed.Problems[0].Text, "when: the regular expression is too large") {
		t.Fatal(err)
	}
	if used > 300<<20 {
		t.Errorf("loading allocated %d MB", used>>20)
	}
}

func TestLoad_LimitsPatternsTogether(t *testing.T) {
	rules := func(n int) error {
		_, err := policy.Load("policy.yaml", []byte(denyRules(n, func(i int) string { return fmt.Sprintf(`args.s.matches("^%d(ab|cd){1,100}$")`, i) })), policy.Options{})
		return err
	}
	if err := rules(10); err != nil {
		t.Error(err)
	}
	if err := rules(100); err == nil || !strings.Contains(err.Error(), "the regular expressions of the file are too large together") {
		t.Error(err)
	}
}

// The rules are counted before any is compiled.
func TestLoad_CountsRulesFirst(t *testing.T) {
	doc := denyRules(11, func(int) string { return "not an expression" })
	_, err := policy.Load("policy.yaml", []byte(doc), policy.Options{MaxRules: 10})
	if failed, ok := errors.AsType[*policy.LoadError](err); !ok || len(failed.Problems) != 1 || !strings.Contains(err.Error(), "the file has 11 rules; the maximum is 10") {
		t.Error(err)
	}
	_, err = policy.Load("policy.yaml", []byte("default: allow\n#"+strings.Repeat("x", 4<<20)), policy.Options{})
	if err == nil || !strings.Contains(err.Error(), "the maximum is 4194304") {
		t.Error(err)
	}
}

// Whatever arguments an agent chooses, a rule stops at its limit, and all rules together at theirs.
func TestDecide_CostCountsWhatIsRead(t *testing.T) {
	text, list := strings.Repeat("abc", 33_000), strings.TrimSuffix(strings.Repeat("1,", 5000), ",")
	deep := `[[[` + list + `]]]`
	args := `{"s":"` + text + `","l":[` + list + `],"a":` + deep + `,"b":` + deep + `,"u":"u","z":"Europe/Zurich"}`
	for _, when := range []string{
		`args.s.matches("^(a|b|c)*(ab|bc|ca){1,30}d$")`,
		`matches(args.s, "^(a|b|c)*(ab|bc|ca){1,30}d$")`,
		`glob("*a*b*c*d*e*f", args.s)`,
		`args.l.all(x, size(args.s) > x)`,
		`args.l.all(x, args.a == args.b)`,
		`args.l.all(x, args.a != args.b || x > 0)`,
		`args.l.all(x, [1] in args.a || x > 0)`,
		`args.l.all(x, x > 0 && args.s.charAt(1) == "b")`,
		`args.l.all(x, int(now.getHours(args.z)) < 30)`,
		`args.l.all(x, int(now.getHours("Asia/Tokyo")) < 30)`,
		`sets.contains(args.l, [1, 2, 3])`,
		`args.l.all(x, args.s.lowerAscii().startsWith("a"))`,
	} {
		set := load(t, denyRules(200, func(i int) string { return fmt.Sprintf("%s && req.graph != %q", when, fmt.Sprint(i)) }))
		d := decide(t, set, input("t", args))
		total, failed := uint64(0), 0
		for _, trace := range d.Trace {
			total += trace.Cost
			if trace.Outcome == policy.RuleFailed && trace.Error == "evaluation cost limit exceeded" {
				failed++
			}
		}
		if failed != len(d.Trace) || d.Verdict != policy.Deny {
			t.Errorf("%s: %d of %d rules failed: %+v", when, failed, len(d.Trace), d.Trace[0])
		}
		if total > 1_300_000 {
			t.Errorf("%s: the rules cost %d", when, total)
		}
	}
}

// What rules usually do costs little.
func TestDecide_CostOfUsualConditions(t *testing.T) {
	sql := `{"sql":"` + strings.Repeat("select name from users where id = 1; ", 50) + `","to":["a@example.org","b@example.org"]}`
	for _, when := range []string{
		`args.sql.lowerAscii().matches("^\\s*(delete|truncate|drop|alter)\\b")`,
		`glob("select*drop*", args.sql)`,
		`args.to.exists(x, !x.endsWith("@example.org"))`,
		`sets.contains(["c@example.org", "d@example.org"], args.to)`,
		`"x" in args.to`,
		`args == {"a": [1, 2]}`,
	} {
		if d := decide(t, load(t, singleRule("deny", when)), input("t", sql)); d.Trace[0].Outcome != policy.RuleMiss || d.Trace[0].Cost > 5000 {
			t.Errorf("%s: %+v", when, d.Trace[0])
		}
	}
}

// endsLater is a context that ends after it was asked some times.
type endsLater struct {
	context.Context
	left *atomic.Int64
}

func (c endsLater) Done() <-chan struct{} {
	ended := make(chan struct{})
	if c.left.Add(-1) < 0 {
		close(ended)
	}
	return ended
}

func (c endsLater) Err() error {
	if c.left.Load() < 0 {
		return context.DeadlineExceeded
	}
	return nil
}

func TestDecide_StopsAtTheDeadline(t *testing.T) {
	set := load(t, denyRules(200, func(int) string { return `args.l.exists(x, x == 7)` }))
	in := input("t", `{"l":[`+strings.TrimSuffix(strings.Repeat("1,", 1000), ",")+`]}`)
	for _, after := range []int64{0, 1, 5, 100} {
		var left atomic.Int64
		left.Store(after)
		d, err := set.DecideContext(endsLater{t.Context(), &left}, in)
		if !errors.Is(err, context.DeadlineExceeded) || d.Verdict != "" || errors.Is(err, policy.ErrInput) {
			t.Errorf("after %d: %s, %v", after, d.Verdict, err)
		}
	}
	ended, end := context.WithCancelCause(t.Context())
	end(errors.New("the server stops"))
	if _, err := set.DecideContext(ended, in); err == nil || !strings.Contains(err.Error(), "the server stops") {
		t.Error(err)
	}
}
