package console

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/fermata-go/fermata/agent"
)

// screen is a terminal, or two pipes.
type screen struct {
	in     <-chan string
	echo   bool // the input is not visible, so it is echoed
	out    io.Writer
	colour bool
	greet  bool // the task is on the screen
	// speaker is the author of the unfinished line; "" if there is none.
	speaker  string
	streamed bool   // the message was streamed
	said     string // the last message of an agent
}

func newScreen(in io.Reader, out io.Writer) *screen {
	return &screen{in: lines(in), echo: !isTerminal(in), out: out, colour: isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

func isTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
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

// promptMark ends every prompt.
const promptMark = "❯ "

// errInputEnded reports the end of the input. It is not io.EOF, which may also be a broken
// connection.
var errInputEnded = errors.New("the input has ended")

// prompt asks for a line. It returns errInputEnded if there are no more.
func (s *screen) prompt(ctx context.Context, label string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	s.printf("%s %s", s.bold(visible(label)), promptMark)
	select {
	case line, ok := <-s.in:
		if !ok {
			s.printf("\n")
			return "", errInputEnded
		}
		if s.echo {
			s.printf("%s\n", visible(line))
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		s.printf("\n")
		return "", ctx.Err()
	}
}

func (s *screen) begin(e Example, c *config) {
	s.printf("%s: %s\n", s.bold("Fermata, "+e.Name), e.About)
	s.printf("%s\n", s.dim("You can leave at any time (Ctrl-C, kill -9, power cut): run "+visible(c.run)+" is saved in "+visible(c.data)+"."))
}

// task shows the task of the run.
func (s *screen) task(text string) {
	s.greet = true
	s.printf("\n%s %s\n", s.bold("you:"), indented(text, "     "))
}

// welcomeBack shows, once, a run that another process started.
func (s *screen) welcomeBack(saved *agent.Snapshot, c *config) {
	if s.greet || len(saved.Messages) == 0 {
		return
	}
	told := saved.Messages[len(saved.Messages)-1].Text
	s.task(told)
	if c.taskGiven && c.task != told {
		s.printf("%s This run already has a task. For another one start another run with -run NAME.\n", s.yellow("!"))
	}
}

// event shows an event of an agent.
func (s *screen) event(e *agent.Event) {
	switch body := e.Body.(type) {
	case agent.Token:
		s.appendSpeech(e.Agent, body.Text)
		s.streamed = true
	case agent.MessageAdded:
		if body.Message.Role == agent.RoleUser {
			return // written by the person at this terminal
		}
		if !s.streamed && body.Message.Text != "" {
			s.appendSpeech(e.Agent, body.Message.Text)
		}
		s.endLine()
		s.said = body.Message.Text
		for _, call := range body.Message.ToolCalls {
			s.printf("  %s %s %s %s\n", s.dim(visible(e.Agent)), s.dim("→"), visible(call.Name), s.dim(visible(call.Args)))
		}
	case agent.ToolOutput:
		s.appendSpeech(body.Call.Name, body.Text)
	case agent.ToolDone:
		s.endLine()
		mark := s.green("←")
		if body.Result.Failed {
			mark = s.red("✗")
		}
		s.printf("  %s %s %s %s\n", s.dim(visible(e.Agent)), mark, visible(body.Call.Name), indented(body.Result.Text, "    "))
	case agent.Transferred:
		s.endLine()
		s.printf("  %s %s\n", s.dim(visible(e.Agent)+" hands over to"), visible(body.To))
	case agent.Exit, agent.Interrupted, agent.Finished: // shown by the agent that continues
	}
}

// appendSpeech adds to a message. Another author begins a new line.
func (s *screen) appendSpeech(who, text string) {
	if s.speaker != who {
		s.endLine()
		s.printf("%s ", s.bold(visible(who)+":"))
		s.speaker = who
	}
	s.printf("%s", indented(text, "  "))
}

func (s *screen) endLine() {
	if s.speaker != "" {
		s.printf("\n")
	}
	s.speaker, s.streamed = "", false
}

// output shows the output of a run, unless it is already on the screen.
func (s *screen) output(o *agent.Output) {
	s.endLine()
	if o != nil && o.Text() != "" && o.Text() != s.said {
		s.printf("%s %s\n", s.bold("answer:"), indented(o.Text(), "  "))
	}
}

func (s *screen) showError(err error) { s.printf("  %s %s\n", s.red("✗"), visible(err.Error())) }

// visible escapes control characters and bidirectional text: the person must see what is done.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

// indented returns visible text with indented continuation lines.
func indented(text, indent string) string {
	parts := strings.Split(text, "\n")
	for i, part := range parts {
		part = visible(strings.ReplaceAll(part, "\t", "    "))
		if i > 0 && part != "" {
			part = indent + part
		}
		parts[i] = part
	}
	return strings.Join(parts, "\n")
}

// quoted quotes a word for a shell.
func quoted(word string) string {
	if strings.ContainsFunc(word, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_./:@", r)
	}) {
		return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return word
}

func (s *screen) printf(format string, args ...any) { fmt.Fprintf(s.out, format, args...) }

func (s *screen) bold(text string) string   { return s.paint("1", text) }
func (s *screen) dim(text string) string    { return s.paint("2", text) }
func (s *screen) red(text string) string    { return s.paint("31", text) }
func (s *screen) green(text string) string  { return s.paint("32", text) }
func (s *screen) yellow(text string) string { return s.paint("33", text) }

func (s *screen) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}
