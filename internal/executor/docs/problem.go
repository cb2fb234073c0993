package docs

import (
	"context"
	"encoding/json"
	"time"

	"github.com/fermata-go/fermata/internal/store"
)

// ProblemKind is why a run failed, was parked or is tried again. Its id is the run, with which it
// is deleted.
const ProblemKind store.DocumentKind = "problem"

// Problem is the last problem of a run.
type Problem struct {
	// Code and Message are for the account of the run and contain no data of the run. Detail is the
	// complete error, for operators.
	Code    string    `json:"code,omitempty"`
	Message string    `json:"message,omitempty"`
	Detail  string    `json:"detail,omitempty"`
	At      time.Time `json:"at,omitzero"`
	// Final says that a retry of the failed run cannot succeed.
	Final bool `json:"final,omitempty"`

	// Crashes counts the processes that ended while they executed the run, since its last execution
	// that ended normally. AloneCrashes counts those that executed nothing else at that time.
	Crashes      int `json:"crashes,omitempty"`
	AloneCrashes int `json:"aloneCrashes,omitempty"`
	// Excused counts the attempts that were not failures of the run: takeovers, and delays after
	// them.
	Excused int `json:"excused,omitempty"`
	// AloneFence is the fence of the last execution that was alone in its process; 0 if it did not
	// stay alone.
	AloneFence int64 `json:"aloneFence,omitempty"`
}

// maxProblemDetail is the maximum size of the complete error in bytes.
const maxProblemDetail = 16 << 10

// Problem returns the last problem of a run with its revision, which is 0 if there was none.
func (ds *Docs) Problem(ctx context.Context, account, run string) (problem Problem, revision int64, err error) {
	paper, err := ds.Store.Document(ctx, account, ProblemKind, run)
	if IsNotFound(err) {
		return problem, 0, nil
	}
	if err == nil {
		err = ds.DecodeBody(paper, &problem)
	}
	return problem, paper.Revision, err
}

// ProblemChange returns the change of the document from a revision.
func ProblemChange(run string, problem Problem, revision int64) (store.DocumentChange, error) {
	if len(problem.Detail) > maxProblemDetail {
		problem.Detail = problem.Detail[:maxProblemDetail]
	}
	body, err := json.Marshal(problem)
	return store.DocumentChange{Kind: ProblemKind, ID: run, Run: run, BaseRevision: revision, Body: body}, err
}
