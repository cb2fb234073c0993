package consoletest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/graph"
)

// crash is what a process that died left, and what became of it.
type crash struct {
	accepted bool // an answer was saved, and nothing is asked
	done     bool // the effect had happened
	repeated bool // its target was called again, and did nothing
	inDoubt  bool // a person was asked whether it had happened
}

// written says that the effect is known to have happened: whoever goes on does not come to it again.
func (c crash) isRecorded() bool { return c.done && !c.repeated && !c.inDoubt }

// killedAtSaves kills the process on both sides of every save from the first answer to where the effect is written down: right
// after the answer was saved, right after the intent to act, after the act and before its receipt. The next process must
// finish the run, must not ask what was answered, and the effect must have happened once.
func (s Scenario) killedAtSaves(t *testing.T) {
	t.Parallel()
	asked := t.TempDir()
	p := Start(t, asked)
	p.Pipe()
	first, code := p.End()
	if code != 0 || !strings.Contains(first, "is kept. Go on with: go run ./examples/"+s.Example.Name) {
		t.Fatalf("exit code %d:\n%s", code, first)
	}
	var crashes []crash
	for _, when := range []string{after, before} {
		var last crash
		for n := 1; !last.isRecorded(); n++ {
			dir := copyOf(t, asked)
			p := start(t, dir, fmt.Sprint(when, " ", n))
			p.Pipe(lines(s.Answers)...)
			said, code := p.End()
			if code == 0 {
				t.Fatalf("there is no save number %d, and the effect is not written down:\n%s", n, said)
			}
			if !t.Run(fmt.Sprint(when, " save ", n), func(t *testing.T) { last = s.recover(t, dir, said) }) {
				return // what follows would fail for the same reason
			}
			crashes = append(crashes, last)
		}
	}
	s.wantCovered(t, crashes)
}

// recover starts the example after a crash, and takes it to its end as a person would. said is what the dead process said.
func (s Scenario) recover(t *testing.T, dir, said string) (c crash) {
	settled := make(map[string]bool)
	for _, id := range interruptID.FindAllString(said, -1) {
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

// look is what an honest person says of an effect in doubt: that person looks whether it has happened.
func (s Scenario) answerInDoubt(t testing.TB, dir string) string {
	t.Helper()
	if done, _ := s.effects(t, dir); done {
		return "y I have looked, it is done"
	}
	return "n"
}

func (s Scenario) effects(t testing.TB, dir string) (done, again bool) {
	t.Helper()
	n, m, err := s.Effects(Data(dir))
	if err != nil {
		t.Fatal(err)
	}
	return n > 0, m > 0
}

// covered makes sure that the crashes hit what they were aimed at.
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
		t.Errorf("its target knows no keys, so a person must be asked and nothing repeated: %+v", crashes)
	}
	if !s.InDoubt && (asked || !repeated) {
		t.Errorf("its target knows keys, so it must be repeated and nobody asked: %+v", crashes)
	}
}
