package external_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/provider"
)

// asksBack sends the agent a clarification, as an executor would.
func (o *owner) asksBack(q provider.Interrupt, number, attempt int) (string, error) {
	return o.provider.Explain(o.t.Context(), o.run, provider.Clarification{
		InterruptID: q.ID, Input: json.RawMessage(o.input), Number: number, Text: "Was it damaged?", By: "bob", At: decidedAt, Attempt: attempt,
	})
}

func TestExplain_SendsTheClarificationToTheAgent(t *testing.T) {
	r := receive(t, nil)
	o := begin(t, newProvider(t, nil), asking(r.URL))
	q := o.asks()
	for _, number := range []int{1, 1, 2} { // the first one again, as after a crash
		if text, err := o.asksBack(q, number, 0); err != nil || text != "" {
			t.Fatalf("%q, %v", text, err)
		}
	}
	taken, tries := r.got()
	if len(taken) != 2 || tries != 3 {
		t.Fatalf("%d messages in %d attempts", len(taken), tries)
	}
	for n, m := range taken {
		if m.Type != "request.clarification" || m.Data.StateKey != "refund-17" || m.Data.Interrupt != q.ID || m.Data.Kind != "refund" || m.Data.Answer != nil ||
			m.Data.Clarification != n+1 || m.Data.Text != "Was it damaged?" || m.Data.By != "bob" || !m.Data.At.Equal(decidedAt) {
			t.Errorf("%+v", m)
		}
	}
}

func TestExplain_UnreachableReceiverIsRetried(t *testing.T) {
	r := receive(t, status(http.StatusServiceUnavailable))
	o := begin(t, newProvider(t, nil), asking(r.URL))
	_, err := o.asksBack(o.asks(), 1, 0)
	if later, ok := errors.AsType[*fermata.RetryError](err); !ok || later.After <= 0 {
		t.Errorf("%v", err)
	}
	r.reply = status(http.StatusGone)
	if _, err := o.asksBack(o.asks(), 1, 1); !errors.Is(err, provider.ErrPark) {
		t.Errorf("%v", err)
	}
}

func TestExplain_AnAgentThatPullsIsNotCalled(t *testing.T) {
	o := begin(t, newProvider(t, nil), `{"kind":"refund","data":{"order":17}}`)
	if text, err := o.asksBack(o.asks(), 1, 0); err != nil || text != "" {
		t.Errorf("%q, %v", text, err)
	}
}
