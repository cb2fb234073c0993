//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/store"
)

// account is the account of all runs. Other accounts must have no access.
const account = "acme"

// request is a request of a person to a replica.
type request struct {
	Account  string                     `json:"account"`
	Key      string                     `json:"key"`
	Amount   int                        `json:"amount,omitempty"` // of a start
	Actor    string                     `json:"actor,omitempty"`
	ResumeID string                     `json:"resumeId,omitempty"`
	Targets  map[string]json.RawMessage `json:"targets,omitempty"` // by interrupt
	// the digest of what they saw, optional
	Shown string       `json:"shown,omitempty"`
	Act   *commandBody `json:"act,omitempty"`
}

// commandBody is a command that does not decide.
type commandBody struct {
	Request string           `json:"request"`
	Name    desk.CommandName `json:"name"`
	To      string           `json:"to,omitempty"`
	Text    string           `json:"text,omitempty"`
	Until   time.Time        `json:"until,omitzero"`
}

// replyKind is the kind of a reply.
type replyKind string

const (
	saidOutcome replyKind = "outcome" // done, with the progress of the run
	saidPending replyKind = "pending" // recorded, and in progress
	saidRefused replyKind = "refused" // Result says why
	saidUnfit   replyKind = "unfit"   // not a valid answer to this question
	saidReused  replyKind = "reused"  // the resume id was used for something else
	saidNoRun   replyKind = "no run"  // in this account
	saidOver    replyKind = "over"    // nothing to cancel
	saidDone    replyKind = "done"    // cancelled or retried
	saidView    replyKind = "view"    // a view
	saidNothing replyKind = ""        // no reply: the result is unknown
)

// answer is a reply of a replica.
type answer struct {
	Kind    replyKind       `json:"said"`
	Outcome json.RawMessage `json:"outcome,omitempty"`

	Result    store.DecisionResult `json:"result,omitempty"`
	Interrupt string               `json:"interrupt,omitempty"`
	By        string               `json:"by,omitempty"`
	Verdict   store.Verdict        `json:"verdict,omitempty"`

	View  *view  `json:"view,omitempty"`
	Error string `json:"error,omitempty"`
}

// accepted reports whether a decision was accepted.
func (a answer) accepted() bool { return a.Kind == saidOutcome || a.Kind == saidPending }

// view is a run as people see it.
type view struct {
	Run       string       `json:"run"`
	Status    store.Status `json:"status"`
	Questions []question   `json:"questions"` // all interrupts

	Requests map[string]desk.Request `json:"requests,omitempty"` // by interrupt, for the desk
}

func (v *view) open() []question {
	var list []question
	for _, q := range v.Questions {
		if q.State == store.InterruptPending {
			list = append(list, q)
		}
	}
	return list
}

// question is an interrupt as people see it.
type question struct {
	ID       string               `json:"id"`
	Kind     string               `json:"kind"`
	Data     json.RawMessage      `json:"data"`
	Deadline time.Time            `json:"deadline,omitzero"`
	State    store.InterruptState `json:"state"`
	Verdict  store.Verdict        `json:"verdict,omitempty"`
	By       string               `json:"by,omitempty"`
	Source   store.Source         `json:"source,omitempty"`
	ResumeID string               `json:"resumeId,omitempty"`
}

// service is the implementation of a replica. An error means that the result is unknown.
type service interface {
	start(ctx context.Context, r request) (answer, error)
	decide(ctx context.Context, r request) (answer, error)
	look(ctx context.Context, r request) (answer, error)
	cancel(ctx context.Context, r request) (answer, error)
	retry(ctx context.Context, r request) (answer, error)
	act(ctx context.Context, r request) (answer, error)
	stop()
}

// newHandler serves a service over HTTP.
func newHandler(s service) http.Handler {
	mux := http.NewServeMux()
	for path, call := range map[string]func(context.Context, request) (answer, error){
		"start": s.start, "decide": s.decide, "look": s.look, "cancel": s.cancel, "retry": s.retry, "act": s.act,
	} {
		mux.HandleFunc("POST /"+path, func(w http.ResponseWriter, r *http.Request) {
			var asked request
			if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			reply, err := call(r.Context(), asked)
			if err != nil {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(reply) // a client without a reply retries
		})
	}
	return mux
}
