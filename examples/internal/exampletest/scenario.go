package exampletest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Scenario describes the expected behaviour of an example.
type Scenario struct {
	// Answers are the answers to the questions, in order, so that the effect happens. Each answer
	// is one line, and each question contains To.
	Answers []Answer
	// Refusal are the lines that prevent the effect. The output must then contain Reason: the
	// script repeats what the model was told.
	Refusal []string
	Reason  string
	// Effects counts the effects that the files in a directory show.
	Effects func(t testing.TB, dir string) int
	// InDoubt reports that the target has no idempotency keys: after a crash during the effect the
	// person is asked whether it happened.
	InDoubt bool
}

// Answer is the answer to a question.
type Answer struct{ To, Line string }

// Test runs the scenario.
func Test(t *testing.T, s Scenario) {
	t.Run("the answers lead to one effect", s.answered)
	t.Run("a refusal has no effect and its reason reaches the model", s.refused)
	t.Run("killed at a question, the same question is asked again", s.killedAtQuestions)
	t.Run("killed at any save after the first answer, the effect happens once", s.killedAtSaves)
}

func (s Scenario) answered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	output, code := Start(t, dir).Dialogue(s.lines()...)
	if code != 0 || s.questions(output) != len(s.Answers) {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	s.wantEffects(t, dir, 1)
	if again, code := Start(t, dir).Dialogue(); code != 0 || !strings.HasSuffix(output, again) {
		t.Errorf("a finished run, started again, exit code %d:\n%s", code, again)
	}
	s.wantEffects(t, dir, 1)
}

func (s Scenario) refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	output, code := Start(t, dir).Dialogue(s.Refusal...)
	if code != 0 || !strings.Contains(strings.ReplaceAll(output, prompt, ""), s.Reason) {
		t.Errorf("the model was not told %q; exit code %d:\n%s", s.Reason, code, output)
	}
	s.wantEffects(t, dir, 0)
}

func (s Scenario) killedAtQuestions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := Start(t, dir)
	for _, answer := range s.Answers {
		asked, ok := p.Read()
		if !ok || !strings.Contains(asked, answer.To) {
			t.Fatalf("it did not ask %q:\n%s", answer.To, asked)
		}
		p.Kill()
		s.wantEffects(t, dir, 0)
		p = Start(t, dir)
		again, ok := p.Read()
		if !ok || !strings.HasSuffix(asked, again) {
			t.Fatalf("it asked\n%s\nand now asks\n%s", asked, again)
		}
		p.Say(answer.Line)
	}
	if rest, code := p.Dialogue(); code != 0 {
		t.Errorf("exit code %d:\n%s", code, rest)
	}
	s.wantEffects(t, dir, 1)
}

// killedAtSaves kills the process before and after every save from the first answer to the end.
// The next process finishes the run. It asks again only if the answer was not saved, and the effect
// happens once.
func (s Scenario) killedAtSaves(t *testing.T) {
	t.Parallel()
	waiting := t.TempDir()
	if output, code := Start(t, waiting).Dialogue(); code == 0 {
		t.Fatalf("the run ended without an answer:\n%s", output)
	}
	var accepted, done, doubted bool // what the crashes hit
	for _, when := range []string{"after", "before"} {
		for n := 1; ; n++ {
			dir := filepath.Join(t.TempDir(), "copy")
			if err := os.CopyFS(dir, os.DirFS(waiting)); err != nil {
				t.Fatal(err)
			}
			output, code := start(t, dir, fmt.Sprint(when, " ", n)).Dialogue(s.lines()...)
			if code == 0 {
				break // there is no save number n
			}
			effects := s.Effects(t, dir)
			rest, inDoubt := s.recover(t, dir, effects)
			asked := s.questions(output) + s.questions(rest)
			if asked != len(s.Answers) && (when == "after" || asked != len(s.Answers)+1) {
				t.Errorf("killed %s save %d, it asked %d times:\n%s\n%s", when, n, asked, output, rest)
			}
			s.wantEffects(t, dir, 1)
			accepted = accepted || effects == 0 && s.questions(rest) == 0
			done = done || effects == 1
			doubted = doubted || inDoubt
		}
	}
	if !accepted || !done || doubted != s.InDoubt {
		t.Errorf("crashes between answer and effect: %v, after the effect: %v; asked about an effect in doubt: %v", accepted, done, doubted)
	}
}

// recover finishes a run after a crash, as a person would.
func (s Scenario) recover(t *testing.T, dir string, effects int) (output string, inDoubt bool) {
	t.Helper()
	p := Start(t, dir)
	for {
		text, asks := p.Read()
		output += text
		if !asks {
			return output, inDoubt
		}
		if strings.Contains(text, "outcome is unknown") {
			inDoubt = true
			p.Say([]string{"n", "y"}[effects]) // the truth
			continue
		}
		p.Say(s.answer(t, text))
	}
}

func (s Scenario) answer(t testing.TB, question string) string {
	t.Helper()
	for _, a := range s.Answers {
		if strings.Contains(question, a.To) {
			return a.Line
		}
	}
	t.Fatalf("no answer for:\n%s", question)
	return ""
}

// questions counts the questions in an output, without those about an effect in doubt.
func (s Scenario) questions(output string) (n int) {
	for _, a := range s.Answers {
		n += strings.Count(output, a.To)
	}
	return n
}

func (s Scenario) lines() (lines []string) {
	for _, a := range s.Answers {
		lines = append(lines, a.Line)
	}
	return lines
}

func (s Scenario) wantEffects(t testing.TB, dir string, want int) {
	t.Helper()
	if got := s.Effects(t, dir); got != want {
		t.Errorf("the effect happened %d times, want %d", got, want)
	}
}
