package decide

import (
	"encoding/json"
	"errors"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/strictjson"
)

var errNoReturn = errors.New("the rules of this request do not let it be returned for redesign")

// returnAnswer is the answer that returns a request of any kind for redesign.
type returnAnswer struct {
	Verb   fermata.Verb `json:"verb"`
	Reason string       `json:"reason"`
}

// checkReturn completes the submission if the answer returns the request for redesign, and reports
// whether it does. It is possible for every kind, if the requirement says so. Otherwise the answer
// is checked like any other.
func (dc *Decider) checkReturn(l *runSnapshot, submitted Answer, w *submission) (bool, error) {
	var back returnAnswer
	if strictjson.Decode(submitted.Value, &back) != nil || back.Verb != fermata.VerbReturn {
		return false, nil
	}
	stored, err := l.requestDoc(dc, w.Interrupt)
	if err != nil || stored.Requirement.OnEscalate != requirement.EscalateReturns {
		return false, err
	}
	w.Verdict = store.VerdictReject
	w.returned = &fermata.Decision{Verb: fermata.VerbReturn, Reason: back.Reason}
	return true, nil
}

// ReturnValue is the answer that returns a request for redesign.
func ReturnValue(reason string) (json.RawMessage, error) {
	return json.Marshal(returnAnswer{fermata.VerbReturn, reason})
}
