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

// Form shows the questions of one kind and reads the answers. [FormFor] creates one.
type Form struct {
	kind string
	show func(d *Dialogue, i *fermata.InterruptCtx) (prompt string, err error)
	read func(ctx context.Context, d *Dialogue, i *fermata.InterruptCtx, line string) (any, error)
}

// FormFor creates a form for a kind. show shows the question and the possible answers, and returns
// the prompt. read parses the typed line and may prompt for more. If it returns an error or an
// invalid answer, the person sees the error and is prompted again.
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

// anyForm is for kinds without a form.
var anyForm = Form{
	show: func(d *Dialogue, i *fermata.InterruptCtx) (string, error) {
		d.Row("what", string(i.Data))
		if kind, ok := fermata.LookupKind(i.Kind); ok {
			d.Row("answer", "JSON that matches "+string(kind.HumanAnswerSchema()))
		} else {
			d.Row("answer", "JSON")
		}
		return "Your answer", nil
	},
	read: func(_ context.Context, _ *Dialogue, _ *fermata.InterruptCtx, line string) (any, error) {
		if !json.Valid([]byte(line)) {
			return nil, errors.New("this is not valid JSON")
		}
		return json.RawMessage(line), nil
	},
}

// ask shows the first open question and returns its answer by id. The others follow in the next
// iteration.
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

// check validates an answer like the runtime.
func check(i *fermata.InterruptCtx, answer any) error {
	kind, ok := fermata.LookupKind(i.Kind)
	if !ok {
		return nil
	}
	_, err := kind.Check(i.Data, answer)
	if wrong, ok := errors.AsType[*fermata.AnswerError](err); ok {
		return wrong.Err // the person knows the rest
	}
	return err
}

// Dialogue is one question for a [Form].
type Dialogue struct {
	screen *screen
	by     string
	check  func(answer any) error
}

// By returns who answers; "" if unknown.
func (d *Dialogue) By() string { return d.by }

// Prompt asks for a line. Return its errors.
func (d *Dialogue) Prompt(ctx context.Context, label string) (string, error) {
	return d.screen.prompt(ctx, label)
}

// ShowError shows what is wrong with an answer.
func (d *Dialogue) ShowError(err error) { d.screen.showError(err) }

const labelWidth = 9

// Row shows a line of information. An empty text is not shown.
func (d *Dialogue) Row(label, text string) {
	if text == "" {
		return
	}
	pad := strings.Repeat(" ", max(1, labelWidth-utf8.RuneCountInString(label)))
	d.screen.printf("  %s%s%s\n", d.screen.dim(visible(label)), pad, indented(text, strings.Repeat(" ", labelWidth+2)))
}

// Option shows one possible answer.
func (d *Dialogue) Option(typed, meaning string) {
	d.screen.printf("  %s%s %s\n", d.screen.bold(typed), strings.Repeat(" ", max(0, 16-utf8.RuneCountInString(typed))), meaning)
}

// header shows the asking agent, so that the person sees immediately what the question is about.
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

// place formats an address as text: the agents and tool calls that lead to a question.
func place(address fermata.Address) string {
	var steps []string
	for n, segment := range address {
		step := segment.ID
		switch {
		case segment.Type == fermata.SegmentTool:
			step += " (" + segment.SubID + ")"
		case n > 0 && address[n-1].Type == fermata.SegmentTool && address[n-1].ID == segment.ID:
			continue // the agent behind the tool with its name
		case segment.SubID != "":
			step += " (for the " + segment.SubID + ". time)"
		}
		steps = append(steps, step)
	}
	return strings.Join(steps, " ▸ ")
}

// firstWord splits a line after its first word.
func firstWord(line string) (word, rest string) {
	word, rest, _ = strings.Cut(line, " ")
	return strings.ToLower(word), strings.TrimSpace(rest)
}

// isLeaving reports that the input has ended or the person wants to leave.
func isLeaving(ctx context.Context, err error) bool {
	return errors.Is(err, errInputEnded) || err != nil && ctx.Err() != nil
}
