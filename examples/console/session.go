package console

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/agent"
	"github.com/fermata-go/fermata/graph"
)

// session is where a run and a person meet.
type session struct {
	runner   *agent.Runner
	screen   *screen
	config   *config
	example  Example
	forms    map[string]Form
	lockFile string
}

var errLocked = errors.New("another process is at work on this run; start again when it is done")

// work moves the run on, asks, moves it on with the answer, until it is finished. Nothing is remembered between two rounds
// but the answer: another process could do every other one.
func (d *session) work(ctx context.Context) error {
	var answer map[string]any // by interrupt id
	for {
		open, err := d.advance(ctx, answer)
		switch {
		case isRejectedAnswer(err):
			d.screen.showError(err)
			answer = nil // and see what is asked now
			continue
		case err != nil:
			d.showResume(ctx, err)
			return err
		case len(open) == 0:
			return nil
		}
		if answer, err = d.ask(ctx, open); err != nil {
			d.showResume(ctx, err)
			return err
		}
	}
}

// isRejectedAnswer says that an answer was not taken and nothing has changed: it does not fit, or somebody else was faster.
func isRejectedAnswer(err error) bool {
	_, wrong := errors.AsType[*fermata.AnswerError](err)
	return wrong || errors.Is(err, graph.ErrAlreadyAnswered) || errors.Is(err, graph.ErrWithdrawn)
}

// move takes the run as far as it gets without a person, and returns what it waits for; nothing if it is finished.
//
// The lock is held while the run is at work, and not while it waits: several people may look at a question, and the first
// answer counts. Whoever has the lock knows that nobody else is at work. So a run that is marked as running was left by a
// process that died, and taking it over is safe.
func (d *session) advance(ctx context.Context, answer map[string]any) ([]*fermata.InterruptCtx, error) {
	release, err := tryLock(d.lockFile)
	if err != nil {
		return nil, err
	}
	defer release()
	saved, err := d.runner.Inspect(ctx, d.config.run)
	switch {
	case errors.Is(err, graph.ErrUnknownRun):
		d.screen.task(d.config.task)
		return d.watch(ctx, d.runner.Query(ctx, d.config.task, agent.WithRun(d.config.run)))
	case err != nil:
		return nil, err
	}
	d.screen.welcomeBack(saved, d.config)
	switch {
	case saved.Status == graph.StatusFinished:
		d.screen.output(saved.Output)
		return nil, d.showFinished(ctx)
	case saved.Status == graph.StatusWaiting && answer == nil:
		return saved.Interrupts, nil
	}
	return d.watch(ctx, d.runner.ResumeWithParams(ctx, d.config.run, &agent.ResumeParams{Targets: answer}, agent.TakeOver()))
}

// watch shows what happens, up to the end or the next question.
func (d *session) watch(ctx context.Context, events iter.Seq2[*agent.Event, error]) ([]*fermata.InterruptCtx, error) {
	for event, err := range events {
		if err != nil {
			return nil, err
		}
		switch body := event.Body.(type) {
		case agent.Interrupted:
			d.screen.endLine()
			for _, bad := range body.BadAnswers {
				d.screen.showError(bad)
			}
			return body.Interrupts, nil
		case agent.Finished:
			d.screen.output(body.Output)
			return nil, d.showFinished(ctx)
		default:
			d.screen.event(event)
		}
	}
	return nil, errors.New("the run ended without a word")
}

// finished says so, and how to begin another run.
func (d *session) showFinished(ctx context.Context) error {
	for n := 2; ; n++ {
		name := fmt.Sprintf("%s-%d", d.example.Name, n)
		_, err := d.runner.Inspect(ctx, name)
		if errors.Is(err, graph.ErrUnknownRun) {
			d.screen.printf("\n%s Run %s is finished. Begin another one with: %s\n", d.screen.green("✓"), visible(d.config.run), d.command(name))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// left says how to go on.
func (d *session) showResume(ctx context.Context, err error) {
	d.screen.endLine()
	switch {
	case errors.Is(err, errLocked):
	case isLeaving(ctx, err):
		d.screen.printf("\nRun %s is kept. Go on with: %s\n", visible(d.config.run), d.command(d.config.run))
	default:
		d.screen.printf("\n%s Run %s did not get on. Try again with: %s\n", d.screen.red("✗"), visible(d.config.run), d.command(d.config.run))
	}
}

// command is what to type for a run.
func (d *session) command(run string) string {
	command := "go run ./examples/" + d.example.Name
	if d.config.data != ".demo" {
		command += " -data " + quoted(d.config.data)
	}
	if run != d.example.Name+"-1" {
		command += " -run " + quoted(run)
	}
	if d.config.model != "" {
		command += " -model " + quoted(d.config.model)
	}
	if d.config.url != "" {
		command += " -url " + quoted(d.config.url)
	}
	return d.screen.bold(visible(command))
}
