package consoletest

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/examples/console"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// Scenario describes the expected behaviour of an example.
type Scenario struct {
	Example console.Example
	// Answers are a person's answers to the questions, in order, so that the effect happens.
	Answers []Answer
	// Refusals are a person's answers so that it does not.
	Refusals []Answer
	// Reason is part of a refusal; it must reach the model.
	Reason string
	// Effects returns how often the effect has happened, according to the files in the data
	// directory, and how often its target was called again and did nothing.
	Effects func(data string) (done, repeated int, err error)
	// InDoubt reports that the target has no idempotency keys: after a crash during the effect a
	// person is asked.
	InDoubt bool
	// ModelCalls is the number of model calls from start to end.
	ModelCalls int
}

// Answer is a person's answer to one question.
type Answer struct {
	To    string // a unique part of the question
	Lines []string
}

// Test runs the scenario.
func Test(t *testing.T, s Scenario) {
	t.Run("dialogue matches the golden file", s.dialogue)
	t.Run("a refusal has no effect and its reason reaches the model", s.refused)
	t.Run("killed at a question, the same question is asked again", s.killedAtQuestions)
	t.Run("killed at any save between the answer and the effect, the effect happens once", s.killedAtSaves)
}

// dialogue compares the terminal output with a golden file.
func (s Scenario) dialogue(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := Start(t, dir)
	p.Pipe(lines(s.Answers)...)
	output, code := p.End()
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	// ids are not part of the comparison
	Golden(t, "dialogue", interruptID.ReplaceAllString(output, "int_…"))
	s.wantEffects(t, dir, 1)
	if calls := len(modelCalls(t, dir)); calls != s.ModelCalls {
		t.Errorf("models were called %d times, want %d", calls, s.ModelCalls)
	}
	s.restartFinished(t, dir, output)
}

// restartFinished starts a program whose run is finished.
func (s Scenario) restartFinished(t *testing.T, dir, output string) {
	t.Helper()
	before := len(modelCalls(t, dir))
	repeated, code := Start(t, dir).End()
	_, end, _ := strings.Cut(output, "\n\n✓ ")
	if code != 0 || !strings.HasSuffix(repeated, "\n\n✓ "+end) || !strings.Contains(end, "is finished. Start another one with: go run ./examples/"+s.Example.Name+" -run ") {
		t.Errorf("started again, exit code %d:\n%s", code, repeated)
	}
	if calls := len(modelCalls(t, dir)); calls != before {
		t.Error("a finished run called a model")
	}
	s.wantEffects(t, dir, 1)
}

func (s Scenario) refused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := Start(t, dir)
	p.Pipe(lines(s.Refusals)...)
	if output, code := p.End(); code != 0 || !strings.Contains(output, "is finished.") {
		t.Errorf("exit code %d:\n%s", code, output)
	}
	s.wantEffects(t, dir, 0)
	calls := modelCalls(t, dir)
	if len(calls) == 0 {
		t.Fatal("no model was called")
	}
	if !slices.ContainsFunc(slices.Concat(calls...), func(m agent.Message) bool {
		return m.Role != agent.RoleAssistant && strings.Contains(m.Text, s.Reason)
	}) {
		t.Errorf("no model received %q; the last one saw %+v", s.Reason, calls[len(calls)-1])
	}
}

// killedAtQuestions kills the process at each question, and checks that the next one asks the same.
func (s Scenario) killedAtQuestions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := Start(t, dir)
	output, asks := p.Read()
	if !asks {
		t.Fatalf("nothing was asked:\n%s", output)
	}
	for n := 0; asks; n++ {
		p.Kill()
		before := len(modelCalls(t, dir))
		p = Start(t, dir)
		repeated := p.Question()
		if Asked(repeated) != Asked(output) {
			t.Errorf("it asked\n%s\nand now asks\n%s", Asked(output), Asked(repeated))
		}
		if saved := s.saved(t, dir); saved.Interrupts[0].ID != idOf(repeated) {
			t.Errorf("it asks %s, and waits for %s", idOf(repeated), saved.Interrupts[0].ID)
		}
		if calls := len(modelCalls(t, dir)); calls != before {
			t.Errorf("a model was called again for the same question")
		}
		s.wantEffects(t, dir, 0)
		p.Say(s.answer(t, s.Answers, repeated)...)
		output, asks = p.Read()
		if n > len(s.Answers) {
			t.Fatal("it never finishes")
		}
	}
	if rest, code := p.End(); code != 0 {
		t.Errorf("exit code %d:\n%s%s", code, output, rest)
	}
	s.wantEffects(t, dir, 1)
	if calls := len(modelCalls(t, dir)); calls != s.ModelCalls {
		t.Errorf("models were called %d times, want %d", calls, s.ModelCalls)
	}
}

// saved reads the run from the file of a program.
func (s Scenario) saved(t testing.TB, dir string) *agent.Snapshot {
	t.Helper()
	saved, err := console.Inspect(t.Context(), s.Example, Data(dir), s.Example.Name+"-1")
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// wantEffects fails the test unless the effect happened want times.
func (s Scenario) wantEffects(t testing.TB, dir string, want int) {
	t.Helper()
	if done, _, err := s.Effects(Data(dir)); done != want || err != nil {
		t.Errorf("it happened %d times, want %d; %v", done, want, err)
	}
}

// answer returns the person's answer to the question at the end of a text.
func (s Scenario) answer(t testing.TB, answers []Answer, text string) []string {
	t.Helper()
	for _, a := range answers {
		if strings.Contains(Asked(text), a.To) {
			return a.Lines
		}
	}
	t.Fatalf("no answer for:\n%s", Asked(text))
	return nil
}

// Asked returns the last question of a text, with its id and its prompt.
func Asked(text string) string {
	return text[max(0, strings.LastIndex(text, "── ")):]
}

var interruptID = regexp.MustCompile(`\bint_[0-9a-z]+\b`)

func idOf(text string) string { return interruptID.FindString(Asked(text)) }

func lines(answers []Answer) []string {
	var all []string
	for _, a := range answers {
		all = append(all, a.Lines...)
	}
	return all
}

// Golden compares a text with testdata/NAME.golden. The flag -update writes the file.
func Golden(t testing.TB, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update rewrites it). Got:\n%s", path, got)
	}
}
