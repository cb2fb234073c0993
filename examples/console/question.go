package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fermata-go/fermata"
)

// Form shows the questions of one kind and reads the answers. [FormFor] makes one.
type Form struct {
	kind string
	show func(d *Dialogue, i *fermata.InterruptCtx) (prompt string, err error)
	read func(ctx context.Context, d *Dialogue, i *fermata.InterruptCtx, line string) (any, error)
}

// FormFor makes a form for a kind. show shows what is asked and how to answer, and returns the text of the prompt. read makes
// an answer of the line that was typed there, and may prompt for more. If it returns an error, or an answer that does not
// fit, the person is told and prompted again.
func FormFor[Q, A any](kind *fermata.Kind[Q, A], show func(d *Dialogue, question Q) (prompt string), read func(ctx context.Context, d *Dialogue, question Q, line string) (A, error)) Form {
	return Form{
		kind: kind.Name(),
		show: func(d *Dialogue, i *fermata.InterruptCtx) (string, error) {
			question, err := kind.Question(i)
			if err != nil {
				return "", err
			}
			return show(d, question), nil
		},
		read: func(ctx context.Context, d *Dialogue, i *fermata.InterruptCtx, line string) (any, error) {
			question, err := kind.Question(i)
			if err != nil {
				return nil, err
			}
			return read(ctx, d, question, line)
		},
	}
}

func formsOf(own []Form) map[string]Form {
	forms := make(map[string]Form)
	for _, form := range append([]Form{approvalForm, inDoubtForm, responseForm, completionForm, limitForm}, own...) {
		forms[form.kind] = form
	}
	return forms
}

// anyForm is for questions that nobody has made a form for.
var anyForm = Form{
	show: func(d *Dialogue, i *fermata.InterruptCtx) (string, error) {
		d.Row("what", string(i.Data))
		if kind, ok := fermata.LookupKind(i.Kind); ok {
			d.Row("answer", "JSON that fits "+string(kind.HumanAnswerSchema()))
		} else {
			d.Row("answer", "JSON")
		}
		return "Your answer", nil
	},
	read: func(_ context.Context, _ *Dialogue, _ *fermata.InterruptCtx, line string) (any, error) {
		if !json.Valid([]byte(line)) {
			return nil, errors.New("that is no JSON")
		}
		return json.RawMessage(line), nil
	},
}

// ask shows the first of the open questions and returns its answer, by its id. The others are still there in the next round.
func (d *session) ask(ctx context.Context, open []*fermata.InterruptCtx) (map[string]any, error) {
	i := open[0]
	form, ok := d.forms[i.Kind]
	if !ok {
		form = anyForm
	}
	dialogue := &Dialogue{screen: d.screen, by: d.config.by, check: func(answer any) error { return check(i, answer) }}
	dialogue.header(i, len(open))
	prompt, err := form.show(dialogue, i)
	if err != nil {
		return nil, err
	}
	for {
		line, err := dialogue.Prompt(ctx, prompt)
		if err != nil {
			return nil, err
		}
		var answer any = json.RawMessage(line)
		if !strings.HasPrefix(line, "{") {
			answer, err = form.read(ctx, dialogue, i, line)
		}
		if err == nil {
			err = dialogue.check(answer)
		}
		switch {
		case err == nil:
			return map[string]any{i.ID: answer}, nil
		case isLeaving(ctx, err):
			return nil, err
		}
		dialogue.ShowError(err)
	}
}

// check says what is wrong with an answer, as the runtime would.
func check(i *fermata.InterruptCtx, answer any) error {
	kind, ok := fermata.LookupKind(i.Kind)
	if !ok {
		return nil
	}
	_, err := kind.Check(i.Data, answer)
	if wrong, ok := errors.AsType[*fermata.AnswerError](err); ok {
		return wrong.Err // the rest the person knows
	}
	return err
}

// Dialogue is one question, as a [Form] sees it.
type Dialogue struct {
	screen *screen
	by     string
	check  func(answer any) error
}

// By is who answers; "" if nobody said.
func (d *Dialogue) By() string { return d.by }

// Prompt asks for a line. Its errors are to be returned.
func (d *Dialogue) Prompt(ctx context.Context, label string) (string, error) {
	return d.screen.prompt(ctx, label)
}

// Complain says what is wrong with an answer.
func (d *Dialogue) ShowError(err error) { d.screen.showError(err) }

const labelWidth = 9

// Row shows something that the person has to know. An empty text is not shown.
func (d *Dialogue) Row(label, text string) {
	if text == "" {
		return
	}
	pad := strings.Repeat(" ", max(1, labelWidth-utf8.RuneCountInString(label)))
	d.screen.printf("  %s%s%s\n", d.screen.dim(visible(label)), pad, indented(text, strings.Repeat(" ", labelWidth+2)))
}

// Option shows one way to answer.
func (d *Dialogue) Option(typed, meaning string) {
	d.screen.printf("  %s%s %s\n", d.screen.bold(typed), strings.Repeat(" ", max(0, 16-utf8.RuneCountInString(typed))), meaning)
}

// header says who asks. Whoever is woken by it must see at once what it is about.
func (d *Dialogue) header(i *fermata.InterruptCtx, open int) {
	title := "A question"
	if open > 1 {
		title = fmt.Sprintf("A question, and %d more after it", open-1)
	}
	kind := i.Kind
	if kind == "" {
		kind = "of no kind"
	}
	d.screen.printf("\n%s %s\n", d.screen.yellow("── "+title), d.screen.dim("("+visible(kind)+", "+i.ID+")"))
	d.Row("who", place(i.Address))
}

// place is an address in words: the agents and the calls of tools that lead to a question.
func place(address fermata.Address) string {
	var steps []string
	for n, segment := range address {
		step := segment.ID
		switch {
		case segment.Type == fermata.SegmentTool:
			step += " (" + segment.SubID + ")"
		case n > 0 && address[n-1].Type == fermata.SegmentTool && address[n-1].ID == segment.ID:
			continue // the agent behind the tool of its name
		case segment.SubID != "":
			step += " (for the " + segment.SubID + ". time)"
		}
		steps = append(steps, step)
	}
	return strings.Join(steps, " ▸ ")
}

// firstWord cuts a line after its first word.
func firstWord(line string) (word, rest string) {
	word, rest, _ = strings.Cut(line, " ")
	return strings.ToLower(word), strings.TrimSpace(rest)
}

// isLeaving says that the person is gone, or wants to be.
func isLeaving(ctx context.Context, err error) bool {
	return errors.Is(err, errInputEnded) || err != nil && ctx.Err() != nil
}
