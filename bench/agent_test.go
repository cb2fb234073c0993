package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/fermata-go/fermata/internal/store"
)

// agentSides are both sides of the scenarios with agents.
var agentSides = map[string]func(depth int, text string) (waitingRun[taskResult], *agentTask, error){
	"ours": func(depth int, text string) (waitingRun[taskResult], *agentTask, error) {
		o, err := newOursAgent(depth, text)
		return o, o.task, err
	},
	"eino": func(depth int, text string) (waitingRun[taskResult], *agentTask, error) {
		e, err := newEinoAgent(depth, text)
		return e, e.task, err
	},
}

func TestAgentTask_WaitsForApprovalAndRunsOnce(t *testing.T) {
	for side, make := range agentSides {
		for depth, text := range []string{
			"level0: 5 bytes went to Ada",
			"level1: level0: 5 bytes went to Ada",
			"level2: level1: level0: 5 bytes went to Ada",
		} {
			t.Run(fmt.Sprintf("%s/depth%d", side, depth), func(t *testing.T) {
				w, e, err := make(depth, "Hello")
				if err != nil {
					t.Fatal(err)
				}
				questions, err := w.start(t.Context(), "run")
				if err != nil || len(questions) != 1 {
					t.Fatalf("interrupts %q, %v; want one", questions, err)
				}
				if calls, sent := e.modelCalls.Load(), e.sent.Load(); calls != int64(depth+1) || sent != 0 {
					t.Errorf("while it waits: %d model calls, %d letters sent; want %d and none", calls, sent, depth+1)
				}
				if size, err := w.size(t.Context(), "run"); err != nil || size == 0 {
					t.Errorf("while it waits %d bytes are stored, %v", size, err)
				}
				got, err := w.resume(t.Context(), "run", map[string]any{questions[0]: nil})
				if want := (taskResult{text: text, modelCalls: int64(2 * (depth + 1)), sent: 1}); err != nil || got != want {
					t.Errorf("it ended as %+v, %v; want %+v", got, err, want)
				}
				if err := e.check(got); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestAgentTask_WrongResultIsAnError(t *testing.T) {
	right := taskResult{text: "level1: level0: 0 bytes went to Ada", modelCalls: 4, sent: 1}
	for name, change := range map[string]func(*taskResult){
		"nothing":              func(*taskResult) {},
		"not sent":             func(d *taskResult) { d.sent = 0 },
		"sent twice":           func(d *taskResult) { d.sent = 2 },
		"extra model call":     func(d *taskResult) { d.modelCalls++ },
		"level without result": func(d *taskResult) { d.text = "level0: 0 bytes went to Ada" },
	} {
		t.Run(name, func(t *testing.T) {
			e, err := newAgentTask(1, "")
			if err != nil {
				t.Fatal(err)
			}
			got := right
			change(&got)
			if err := e.check(got); (err == nil) != (got == right) {
				t.Errorf("check of %+v: %v", got, err)
			}
		})
	}
	e, err := newAgentTask(0, "a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.send(letter{To: "Ada", Text: "b"}); err == nil {
		t.Error("other text sent")
	}
}

// TestAgentTask_ArgumentsAreStoredOncePerDepth checks our side: agents around the waiting one do
// not copy its arguments.
func TestAgentTask_ArgumentsAreStoredOncePerDepth(t *testing.T) {
	added := make([]int, maxAgentDepth+1)
	for depth := range added {
		added[depth] = total(waitingParts(t, depth, escapedText(4*kib))) - total(waitingParts(t, depth, ""))
	}
	const digits = 16 // the run records its execution time in nanoseconds
	// a part that is too large to be inlined has its full name, with one more segment per level
	const names = 2 * 64
	if slices.Max(added)-slices.Min(added) > digits+maxAgentDepth*names {
		t.Errorf("4 KiB of arguments add %d bytes at depths 0 to %d, want the same at each except for the names of parts", added, maxAgentDepth)
	}
}

// TestAgentTask_Parts prints with -v what is stored at the greatest depth, by part.
func TestAgentTask_Parts(t *testing.T) {
	parts := waitingParts(t, maxAgentDepth, "")
	var pack struct{ Parts map[string]json.RawMessage }
	if err := json.Unmarshal(parts["run"], &pack); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes in %d parts; the part run contains %d small ones", total(parts), len(parts), len(pack.Parts))
	for name, data := range pack.Parts {
		parts["run, "+name] = data
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		t.Logf("%5d + %5d  %s", len(name), len(parts[name]), name)
	}
}

func total(parts map[string][]byte) int {
	sum := 0
	for name, data := range parts {
		sum += len(name) + len(data)
	}
	return sum
}

// waitingParts returns what our side stores while it waits.
func waitingParts(t *testing.T, depth int, text string) map[string][]byte {
	t.Helper()
	o, err := newOursAgent(depth, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.start(t.Context(), "run"); err != nil {
		t.Fatal(err)
	}
	saved, err := o.Load(context.Background(), store.Key{Run: "run"})
	if err != nil {
		t.Fatal(err)
	}
	return saved.Parts
}

func TestJudge_AgentGoals(t *testing.T) {
	row := func(name string, cpu float64, stored int) result {
		return result{
			Name: name, Ours: measured{Best: sample{CPU: cpu}, Stored: stored},
			Eino: &measured{Best: sample{CPU: 100}},
		}
	}
	for name, test := range map[string]struct {
		measured []result
		goal     string
		want     string
	}{
		"a fifth":        {[]result{row("agent/held", 20, 0)}, "agent/held: at most 1/5 of Eino's CPU", "met"},
		"a quarter":      {[]result{row("agent/held", 25, 0)}, "agent/held: at most 1/5 of Eino's CPU", "**NOT met**"},
		"twice":          {[]result{row(nestedName(0, 0), 1, 100), row(nestedName(0, 4), 1, 200)}, "agent/nested/depth0 → agent/nested/depth4: at most 2 × the stored bytes", "met"},
		"more than that": {[]result{row(nestedName(0, 0), 1, 100), row(nestedName(0, 4), 1, 201)}, "agent/nested/depth0 → agent/nested/depth4: at most 2 × the stored bytes", "**NOT met**"},
		"per level":      {[]result{row(nestedName(0, 0), 1, 100), row(nestedName(0, 1), 1, 110), row(nestedName(0, 4), 1, 152)}, "agent/nested/depth0 → agent/nested/depth4: each level adds as many stored bytes as the first (×4)", "met"},
		"ever more":      {[]result{row(nestedName(0, 0), 1, 100), row(nestedName(0, 1), 1, 110), row(nestedName(0, 4), 1, 153)}, "agent/nested/depth0 → agent/nested/depth4: each level adds as many stored bytes as the first (×4)", "**NOT met**"},
		"one missing":    {[]result{row(nestedName(0, 0), 1, 100), row(nestedName(0, 4), 1, 152)}, "agent/nested/depth0 → agent/nested/depth4: each level adds as many stored bytes as the first (×4)", "not judged"},
	} {
		t.Run(name, func(t *testing.T) {
			verdicts := judge(test.measured, false)
			i := slices.IndexFunc(verdicts, func(v verdict) bool { return v.Goal == test.goal })
			if i < 0 || verdicts[i].word() != test.want {
				t.Errorf("%s: want %s in %+v", test.goal, test.want, verdicts)
			}
		})
	}
}
