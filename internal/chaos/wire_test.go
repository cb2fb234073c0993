//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/fermata-go/fermata/desk"
	"github.com/fermata-go/fermata/store"
)

// account is whose runs all are. In the name of another account nobody gets anywhere.
const account = "acme"

// request is what a person sends to a replica.
type request struct {
	Account  string                     `json:"account"`
	Key      string                     `json:"key"`
	Amount   int                        `json:"amount,omitempty"` // of a start
	Actor    string                     `json:"actor,omitempty"`
	ResumeID string                     `json:"resumeId,omitempty"`
	Targets  map[string]json.RawMessage `json:"targets,omitempty"` // by interrupt
	Shown    string                     `json:"shown,omitempty"`   // the digest of what they saw, if they say
	Act      *commandBody               `json:"act,omitempty"`
}

// commandBody is something that is done with a request and decides nothing.
type commandBody struct {
	Request string           `json:"request"`
	Name    desk.CommandName `json:"name"`
	To      string           `json:"to,omitempty"`
	Text    string           `json:"text,omitempty"`
	Until   time.Time        `json:"until,omitzero"`
}

// replyKind is what became of a request.
type replyKind string

const (
	saidOutcome  replyKind = "outcome"  // done, and this is how far the run has come
	saidPending  replyKind = "pending"  // recorded, and under way
	saidRefused  replyKind = "refused"  // Result says why
	saidUnfit    replyKind = "unfit"    // not an answer to this question
	saidReused   replyKind = "reused"   // the resume id stands for something else
	saidNoRun    replyKind = "no run"   // in this account
	saidOver     replyKind = "over"     // nothing to cancel any more
	saidDone     replyKind = "done"     // cancelled, or let go on
	saidView     replyKind = "view"     // what there is to see
	saidConflict replyKind = "conflict" // the seed's: somebody else is at it
	saidNothing  replyKind = ""         // no answer: nobody knows
)

// answer is what a replica says.
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

// accepted reports whether a decision was taken.
func (a answer) accepted() bool { return a.Kind == saidOutcome || a.Kind == saidPending }

// view is a run as people see it.
type view struct {
	Run       string       `json:"run"`
	Status    store.Status `json:"status"`
	Questions []question   `json:"questions"` // all that were ever asked

	Requests map[string]desk.Request `json:"requests,omitempty"` // by question, for those who look at the desk
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

// service is what stands behind a replica's door. An error means that nobody knows what happened.
type service interface {
	start(ctx context.Context, r request) (answer, error)
	decide(ctx context.Context, r request) (answer, error)
	look(ctx context.Context, r request) (answer, error)
	cancel(ctx context.Context, r request) (answer, error)
	retry(ctx context.Context, r request) (answer, error)
	act(ctx context.Context, r request) (answer, error)
	stop()
}

// newHandler serves a service on HTTP.
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
			_ = json.NewEncoder(w).Encode(reply) // whoever does not get it asks again
		})
	}
	return mux
}
