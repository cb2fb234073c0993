package console_test

import (
	"strings"
	"testing"

	"github.com/fermata-go/fermata/examples/console"
	"github.com/fermata-go/fermata/examples/console/consoletest"
)

func TestLeave_TheRunWaitsAndTheCommandGoesOn(t *testing.T) {
	for name, test := range map[string]struct {
		leave func(p *consoletest.Program)
		code  int
	}{
		"at the end of the input": {func(p *consoletest.Program) { p.Pipe() }, 0},
		"with Ctrl-C":             {func(p *consoletest.Program) { p.Interrupt() }, console.ExitInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			p := consoletest.Start(t, dir, "-run", "my run", "-model", "script")
			asked := p.Question()
			test.leave(p)
			rest, code := p.End()
			if code != test.code || !strings.Contains(rest, "Run my run is saved. Continue with: go run ./examples/console -run 'my run' -model script\n") {
				t.Errorf("exit code %d:\n%s", code, rest)
			}
			p = consoletest.Start(t, dir, "-run", "my run", "-task", "another")
			again := p.Question()
			if !strings.Contains(again, "you: approve\n") || !strings.Contains(again, "This run already has a task.") {
				t.Errorf("it does not show its task:\n%s", again)
			}
			if consoletest.Asked(asked) != consoletest.Asked(again) {
				t.Errorf("it asked\n%s\nand now asks\n%s", asked, again)
			}
			p.Say("y")
			if rest, code := p.End(); code != 0 || !strings.Contains(rest, "approve said") {
				t.Errorf("exit code %d:\n%s", code, rest)
			}
		})
	}
}

func TestTwoTerminals_TheFirstAnswerCounts(t *testing.T) {
	dir := t.TempDir()
	first := consoletest.Start(t, dir)
	first.Question()
	second := consoletest.Start(t, dir)
	second.Question()
	first.Say("n not today")
	if rest, code := first.End(); code != 0 || !strings.Contains(rest, "not today") {
		t.Errorf("the first, exit code %d:\n%s", code, rest)
	}
	second.Say("y")
	if rest, code := second.End(); code != 0 || !strings.Contains(rest, "answer: approve said <approve was refused by ann: not today") {
		t.Errorf("the second, exit code %d:\n%s", code, rest)
	}
}

func TestTwoTerminals_AnAnswerToAnotherQuestionThanTheOpenOneIsLate(t *testing.T) {
	dir := t.TempDir()
	first := consoletest.Start(t, dir, "-task", "follow respond")
	first.Question()
	second := consoletest.Start(t, dir)
	second.Question()
	first.Say("5")
	first.Question()
	second.Say("6")
	if said := second.Question(); !strings.Contains(said, "already answered") || !strings.Contains(said, "tool-response") {
		t.Errorf("the second said:\n%s", said)
	}
	second.Say("hello")
	if rest, code := second.End(); code != 0 || !strings.Contains(rest, `follow said <{"n":5,"text":"one"}>`) {
		t.Errorf("exit code %d:\n%s", code, rest)
	}
}

func TestLock_ARunIsNotTakenFromAProcessThatIsAlive(t *testing.T) {
	dir := t.TempDir()
	p := consoletest.Start(t, dir)
	p.Question()
	p.Kill()
	release, err := console.TryLock(consoletest.Data(dir) + "/console-console-1.lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := console.TryLock(consoletest.Data(dir) + "/console-console-1.lock"); err == nil {
		t.Error("two have the lock")
	}
	if rest, code := consoletest.Start(t, dir).End(); code != console.ExitFailed || strings.Contains(rest, "A question") {
		t.Errorf("exit code %d:\n%s", code, rest)
	}
	release()
	consoletest.Start(t, dir).Question()
}
