package consoletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/graph"
)

// crash describes what a killed process left behind, and how the run ended.
type crash struct {
	accepted bool // an answer was saved, and no interrupt is open
	done     bool // the effect had happened
	repeated bool // its target was called again, and did nothing
	inDoubt  bool // a person was asked about the effect in doubt
}

// isRecorded reports that the effect is known to have happened: later processes do not repeat it.
func (c crash) isRecorded() bool { return c.done && !c.repeated && !c.inDoubt }

// killedAtSaves kills the process before and after every save from the first answer until the
// effect is recorded: right after the answer was saved, right after the intent, after the effect
// and before its receipt. The next process must finish the run and must not ask again, and the
// effect must have happened once.
func (s Scenario) killedAtSaves(t *testing.T) {
	t.Parallel()
	asked := t.TempDir()
	p := Start(t, asked)
	p.Pipe()
	first, code := p.End()
	if code != 0 || !strings.Contains(first, "is saved. Continue with: go run ./examples/"+s.Example.Name) {
		t.Fatalf("exit code %d:\n%s", code, first)
	}
	var crashes []crash
	for _, when := range []string{after, before} {
		var last crash
		for n := 1; !last.isRecorded(); n++ {
			dir := copyOf(t, asked)
			p := start(t, dir, fmt.Sprint(when, " ", n))
			p.Pipe(lines(s.Answers)...)
			output, code := p.End()
			if code == 0 {
				t.Fatalf("there is no save number %d, and the effect is not recorded:\n%s", n, output)
			}
			if !t.Run(fmt.Sprint(when, " save ", n), func(t *testing.T) { last = s.recover(t, dir, output) }) {
				return // later iterations would fail for the same reason
			}
			crashes = append(crashes, last)
		}
	}
	s.wantCovered(t, crashes)
}

// recover starts the example after a crash and finishes it as a person would. said is the output of
// the killed process.
func (s Scenario) recover(t *testing.T, dir, output string) (c crash) {
	settled := make(map[string]bool)
	for _, id := range interruptID.FindAllString(output, -1) {
		settled[id] = true
	}
	saved := s.saved(t, dir)
	for _, open := range saved.Interrupts {
		delete(settled, open.ID)
	}
	c.accepted = saved.Status == graph.StatusRunning && len(saved.Interrupts) == 0
	c.done, _ = s.effects(t, dir)
	p := Start(t, dir)
	text, asks := p.Read()
	for ; asks; text, asks = p.Read() {
		switch {
		case settled[idOf(text)]:
			t.Fatalf("asked again:\n%s", Asked(text))
		case strings.Contains(Asked(text), "effect-in-doubt"):
			c.inDoubt = true
			p.Say(s.answerInDoubt(t, dir))
		default:
			p.Say(s.answer(t, s.Answers, text)...)
		}
	}
	if rest, code := p.End(); code != 0 {
		t.Errorf("exit code %d:\n%s%s", code, text, rest)
	}
	s.wantEffects(t, dir, 1)
	_, c.repeated = s.effects(t, dir)
	if calls := len(modelCalls(t, dir)); calls > s.ModelCalls+1 {
		t.Errorf("models were called %d times, want %d and at most one more", calls, s.ModelCalls)
	}
	return c
}

// answerInDoubt returns the truthful answer about an effect in doubt: it checks whether the effect
// has happened.
func (s Scenario) answerInDoubt(t testing.TB, dir string) string {
	t.Helper()
	if done, _ := s.effects(t, dir); done {
		return "y I have looked, it is done"
	}
	return "n"
}

func (s Scenario) effects(t testing.TB, dir string) (done, repeated bool) {
	t.Helper()
	n, m, err := s.Effects(Data(dir))
	if err != nil {
		t.Fatal(err)
	}
	return n > 0, m > 0
}

// wantCovered checks that the crashes hit the intended points.
func (s Scenario) wantCovered(t *testing.T, crashes []crash) {
	t.Helper()
	for what, hit := range map[string]func(crash) bool{
		"between the answer and the effect":  func(c crash) bool { return c.accepted && !c.done },
		"between the effect and its receipt": func(c crash) bool { return c.done && (c.inDoubt || c.repeated) },
	} {
		if !slices.ContainsFunc(crashes, hit) {
			t.Errorf("no crash hit the point %s: %+v", what, crashes)
		}
	}
	afterIntent := slices.ContainsFunc(crashes, func(c crash) bool { return c.inDoubt && !c.done })
	asked := slices.ContainsFunc(crashes, func(c crash) bool { return c.inDoubt })
	repeated := slices.ContainsFunc(crashes, func(c crash) bool { return c.repeated })
	if s.InDoubt && (!afterIntent || repeated) {
		t.Errorf("its target has no idempotency keys, so a person must be asked and nothing repeated: %+v", crashes)
	}
	if !s.InDoubt && (asked || !repeated) {
		t.Errorf("its target has idempotency keys, so the effect must be repeated without asking: %+v", crashes)
	}
}
