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

// session runs an example's run and asks the person.
type session struct {
	runner   *agent.Runner
	screen   *screen
	config   *config
	example  Example
	forms    map[string]Form
	lockFile string
}

var errLocked = errors.New("another process is executing this run; start again when it is done")

// work advances the run, asks, and advances it with the answer, until it is finished. It keeps no
// state between two iterations except the answer: another process could do the next one.
func (d *session) work(ctx context.Context) error {
	var answer map[string]any // by interrupt id
	for {
		open, err := d.advance(ctx, answer)
		switch {
		case isRejectedAnswer(err):
			d.screen.showError(err)
			answer = nil // and show the current question
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

// isRejectedAnswer reports that an answer was rejected and nothing has changed: it is invalid, or
// another person was faster.
func isRejectedAnswer(err error) bool {
	_, wrong := errors.AsType[*fermata.AnswerError](err)
	return wrong || errors.Is(err, graph.ErrAlreadyAnswered) || errors.Is(err, graph.ErrWithdrawn)
}

// advance executes the run until it waits or ends, and returns the open interrupts; none if it is
// finished.
//
// The lock is held while the run is executing, and not while it waits: several people may look at a
// question, and the first answer counts. The holder of the lock knows that no other process is
// executing the run. So a run that is marked as running was left by a process that died, and taking
// it over is safe.
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

// watch shows events up to the end or the next question.
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
	return nil, errors.New("the run ended without an event")
}

// showFinished reports the end, and how to start another run.
func (d *session) showFinished(ctx context.Context) error {
	for n := 2; ; n++ {
		name := fmt.Sprintf("%s-%d", d.example.Name, n)
		_, err := d.runner.Inspect(ctx, name)
		if errors.Is(err, graph.ErrUnknownRun) {
			d.screen.printf("\n%s Run %s is finished. Start another one with: %s\n", d.screen.green("✓"), visible(d.config.run), d.command(name))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// showResume reports how to continue.
func (d *session) showResume(ctx context.Context, err error) {
	d.screen.endLine()
	switch {
	case errors.Is(err, errLocked):
	case isLeaving(ctx, err):
		d.screen.printf("\nRun %s is saved. Continue with: %s\n", visible(d.config.run), d.command(d.config.run))
	default:
		d.screen.printf("\n%s Run %s failed. Retry with: %s\n", d.screen.red("✗"), visible(d.config.run), d.command(d.config.run))
	}
}

// command returns the command line for a run.
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
