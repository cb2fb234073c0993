package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"github.com/fermata-go/fermata/graph"
)

// terminal asks a person at a keyboard.
type terminal struct {
	in     <-chan string
	out    io.Writer
	config config
	// shown is the number of history entries that are already on the screen.
	shown int
}

var _ reviewer = (*terminal)(nil)

func newTerminal(in io.Reader, out io.Writer, c config) *terminal {
	t := &terminal{in: lines(in), out: out, config: c}
	t.printf("Fermata, content review: an agent drafts a text, you decide whether it is published.\n")
	t.printf("You can leave at any time (Ctrl-C, kill -9, power cut): everything is saved in %s.\n", c.data)
	return t
}

// lines reads in the background, so that waiting for a line can be cancelled. It ends with its
// input, or with the program.
func lines(in io.Reader) <-chan string {
	read := make(chan string)
	go func() {
		defer close(read)
		scanner := bufio.NewScanner(in)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			read <- scanner.Text()
		}
	}()
	return read
}

func next(ctx context.Context, in <-chan string) (string, error) {
	select {
	case line, ok := <-in:
		if !ok {
			return "", io.EOF
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (t *terminal) Ask(ctx context.Context, saved *graph.Snapshot[State]) (any, error) {
	q, err := Review.Question(saved.Interrupts[0])
	if err != nil {
		return nil, err
	}
	t.trail(saved)
	t.printf("  waiting   human_review  %s\n\n", visible(q.Reason))
	t.draft(q.Draft)
	for _, warning := range q.Warnings {
		t.printf("  ! %s\n", visible(warning))
	}
	t.printf("\n")
	for _, a := range q.SuggestedActions {
		t.printf("  %s  %-8s %s\n", keys[a.Action], a.Action, visible(a.Label))
	}
	t.printf("  a reason may follow, as in: r make it shorter\n\n")
	for {
		verdict, err := t.read(ctx)
		if err != nil {
			return nil, err
		}
		err = verdict.Validate()
		if err == nil {
			return verdict, nil
		}
		t.Refused(err)
	}
}

// keys are the short forms of the answers.
var keys = map[Action]string{Approve: "a", Revise: "r", Reject: "x"}

// read returns the person's answer. Text after the first word is the reason: "r make it shorter".
func (t *terminal) read(ctx context.Context) (Verdict, error) {
	for {
		line, err := t.prompt(ctx, "Your answer (a, r or x)")
		if err != nil {
			return Verdict{}, err
		}
		word, feedback, _ := strings.Cut(line, " ")
		v := Verdict{Action: actionOf(word), Feedback: strings.TrimSpace(feedback)}
		switch {
		case v.Action == "":
			t.Refused(fmt.Errorf("“%s” is not a valid answer", line))
			continue
		case v.Action == Revise && v.Feedback == "":
			v.Feedback, err = t.prompt(ctx, "What should change?")
		}
		return v, err
	}
}

func actionOf(word string) Action {
	for action, key := range keys {
		if strings.EqualFold(word, key) || strings.EqualFold(word, string(action)) {
			return action
		}
	}
	return ""
}

func (t *terminal) prompt(ctx context.Context, text string) (string, error) {
	t.printf("%s > ", text)
	line, err := next(ctx, t.in)
	if err != nil {
		t.printf("\n")
	}
	return line, err
}

func (t *terminal) Refused(err error) {
	if errors.Is(err, graph.ErrAlreadyAnswered) || errors.Is(err, graph.ErrFinished) {
		err = errors.New("another person has already answered")
	}
	t.printf("  ✗ %v\n", err)
}

func (t *terminal) Done(saved *graph.Snapshot[State]) {
	t.trail(saved)
	s := saved.State
	if s.Published == "" {
		t.printf("\n✗ Rejected because %s. Nothing was published.\n", s.Rejected)
	} else {
		t.printf("\n✓ Published to %s\n", s.Published)
	}
	t.printf("Run %s is finished. Start another one with: %s\n", saved.Run, t.command(""))
}

func (t *terminal) Left(run string) {
	t.printf("The draft waits for you. Continue at this question with: %s\n", t.command(run))
}

// trail prints the new history entries with their times.
func (t *terminal) trail(saved *graph.Snapshot[State]) {
	if t.shown == 0 {
		t.printf("\nRun %s, about %s\n", visible(saved.Run), visible(saved.State.Topic))
		if t.config.topicGiven && t.config.topic != saved.State.Topic {
			t.printf("  ! it has already started; for another topic start another run with -run NAME\n")
		}
	} else {
		t.printf("\n")
	}
	for _, step := range saved.State.Trail[t.shown:] {
		t.printf("  %s  %-12s  %s\n", step.At.Local().Format(time.TimeOnly), step.Node, visible(step.Note))
	}
	t.shown = len(saved.State.Trail)
}

const width = 72

func (t *terminal) draft(d Draft) {
	t.printf("  %s\n", "┌─ "+d.ID+" "+strings.Repeat("─", width-len(d.ID)-2))
	for _, line := range wrap(d.Content) {
		t.printf("  │ %s\n", line)
	}
	t.printf("  %s\n", "└"+strings.Repeat("─", width+1))
}

// wrap breaks lines between words.
func wrap(text string) []string {
	var wrapped []string
	for line := range strings.Lines(text) {
		current := ""
		for _, word := range strings.Fields(line) {
			if current != "" && len([]rune(current))+1+len([]rune(word)) > width {
				wrapped, current = append(wrapped, visible(current)), ""
			}
			current = strings.TrimPrefix(current+" "+word, " ")
		}
		wrapped = append(wrapped, visible(current))
	}
	return wrapped
}

// visible escapes control characters and bidirectional text: the reviewer must see what is
// published.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// command returns the command line to continue.
func (t *terminal) command(run string) string {
	command := "go run ./examples/contentreview"
	if t.config.data != ".demo" {
		command += " -data " + t.config.data
	}
	if run != "" && t.config.run != "" {
		command += " -run " + run
	}
	return command
}

func (t *terminal) printf(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }
