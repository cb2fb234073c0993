package worker

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/executor/background"
	"github.com/fermata-go/fermata/internal/executor/docs"
	"github.com/fermata-go/fermata/internal/executor/retry"
	"github.com/fermata-go/fermata/internal/executor/txn"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// The codes of problems of executions. Failed runs have the code of their outcome.
const (
	codeExecutionFailed = "execution_failed"  // tried again, or parked because the provider said so
	codeTooManyAttempts = "too_many_attempts" // parked
	codeCrashed         = "crashed"           // parked
)

// changeProblem changes the problem of a run in its own transaction.
func (w *Worker) changeProblem(ctx context.Context, run store.Run, change func(*docs.Problem)) error {
	return retry.WhileStale(ctx, func() error {
		problem, revision, err := w.docs.Problem(ctx, run.Account, run.ID)
		if err != nil {
			return err
		}
		change(&problem)
		doc, err := docs.ProblemChange(run.ID, problem, revision)
		if err != nil {
			return err
		}
		return w.docs.WriteDocument(ctx, run.Account, doc)
	})
}

// recordProblem records why an execution could not be finished. Nothing depends on it, so an error
// is only logged.
func (w *Worker) recordProblem(ctx context.Context, run store.Run, why error) {
	err := w.changeProblem(ctx, run, func(p *docs.Problem) {
		p.At = time.Now().UTC()
		switch reason, parked := errors.AsType[*parkReason](why); {
		case parked && p.Message != "" && reason.code == codeTooManyAttempts:
			p.Code, p.Message = reason.code, reason.text+"; the last failure: "+p.Message
		case parked:
			p.Code, p.Message = reason.code, reason.text
		default:
			p.Code, p.Message, p.Detail = codeExecutionFailed, background.ErrorClass(why), why.Error()
		}
	})
	if err != nil {
		w.config.Log.Warn("reason of an unfinished execution not recorded", "account", run.Account, "run", run.ID, "err", err)
	}
}

// addProblem adds the complete error of a run that fails to the writes of the execution, or else
// forgets the crashes of a run whose execution ended normally. came is the result of the provider,
// which the executor may have rejected.
func (w *Worker) addProblem(ctx context.Context, c *txn.Tx, outcome fermata.Outcome, came provider.Outcome) error {
	public, isFailure := outcome.(fermata.Failed)
	if !isFailure && c.Run.Attempts == 0 {
		return nil
	}
	problem, revision, err := w.docs.Problem(ctx, c.Run.Account, c.Run.ID)
	switch {
	case err != nil:
		return err
	case isFailure:
		problem = docs.Problem{Code: public.Code, Message: public.Message, Detail: public.Message, At: time.Now().UTC(), Final: public.Code == codeDenied}
		if failed, ok := came.(provider.Failed); ok {
			problem.Detail, problem.Final = cmp.Or(failed.Detail, failed.Message), failed.Final
		}
	case problem.Excused == 0:
		return nil
	default:
		problem.Crashes, problem.AloneCrashes, problem.Excused, problem.AloneFence = 0, 0, 0, 0
	}
	change, err := docs.ProblemChange(c.Run.ID, problem, revision)
	c.Documents = append(c.Documents, change)
	return err
}

// parkReason is why the executor parks a run by itself.
type parkReason struct{ code, text string }

func (e *parkReason) Error() string  { return e.text }
func (e *parkReason) ForLog() string { return e.text }
func (e *parkReason) Unwrap() error  { return provider.ErrPark }
