package external_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider"
)

// withdraws notifies the agent that its run was ended, as an executor would.
func (o *owner) withdraws(q provider.Interrupt, attempt int) error {
	return o.provider.NotifyWithdrawn(o.t.Context(), o.run, provider.Withdrawal{
		InterruptID: q.ID, Input: json.RawMessage(o.input), Reason: "cancelled", At: decidedAt, Attempt: attempt,
	})
}

func TestNotifyWithdrawn_SendsTheReason(t *testing.T) {
	r := receive(t, nil)
	o := begin(t, newProvider(t, nil), asking(r.URL))
	q := o.asks()
	for range 2 { // again, as after a crash
		if err := o.withdraws(q, 0); err != nil {
			t.Fatal(err)
		}
	}
	taken, tries := r.got()
	if len(taken) != 1 || tries != 2 {
		t.Fatalf("%d messages in %d attempts", len(taken), tries)
	}
	m := taken[0]
	if m.Type != "request.withdrawn" || !m.Timestamp.Equal(decidedAt) || m.Data.StateKey != "refund-17" || m.Data.Interrupt != q.ID || m.Data.Kind != "refund" ||
		m.Data.Reason != "cancelled" || m.Data.Answer != nil || m.Data.By != "" || !m.Data.At.Equal(decidedAt) {
		t.Errorf("%+v", m)
	}
}

func TestNotifyWithdrawn_UnreachableReceiverIsRetried(t *testing.T) {
	r := receive(t, status(http.StatusServiceUnavailable))
	o := begin(t, newProvider(t, nil), asking(r.URL))
	if later, ok := errors.AsType[*fermata.RetryError](o.withdraws(o.asks(), 0)); !ok || later.After <= 0 {
		t.Errorf("%v", later)
	}
	r.reply = status(http.StatusGone)
	if err := o.withdraws(o.asks(), 1); !errors.Is(err, provider.ErrPark) {
		t.Errorf("%v", err)
	}
	pulls := begin(t, newProvider(t, nil), refund)
	if err := pulls.withdraws(pulls.asks(), 0); err != nil {
		t.Errorf("an agent that polls: %v", err)
	}
}

func TestGolden_WithdrawnMessage(t *testing.T) {
	var body []byte
	var id string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		id = r.Header.Get("webhook-id")
	}))
	defer server.Close()
	o := begin(t, newProvider(t, nil), asking(server.URL))
	if err := o.withdraws(o.asks(), 0); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "testdata/withdrawn.json", append(body, '\n'))
	golden.Compare(t, "testdata/withdrawn.id.txt", id+"\n")
}

// A run is ended, or another one takes its state key: the requester learns that there will be no
// answer, by webhook and by polling.
func TestExecutor_AnAgentHearsThatItsRunWasEnded(t *testing.T) {
	r := receive(t, nil)
	e := newExecutor(t, memory.NewStore(nil), newProvider(t, nil), nil)
	e.StartWorkers()
	first := ask(t, e, "refund-17", asking(r.URL))
	second, err := e.Run(t.Context(), executor.RunRequest{
		Account: "acme", StateKey: "refund-17", Graph: "external:request", Input: json.RawMessage(asking(r.URL)), StartID: "2", Supersede: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Cancel(t.Context(), "acme", "refund-17", desk.From{Actor: desk.PersonActor("ops", "")}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{first.Interrupts[0].ID: "superseded", second.(fermata.NeedsInput).Interrupts[0].ID: "cancelled"}
	var taken []received
	for deadline := time.Now().Add(time.Minute); len(taken) < 2; time.Sleep(time.Millisecond) {
		if taken, _ = r.got(); time.Now().After(deadline) {
			t.Fatalf("it heard %+v", taken)
		}
	}
	for _, m := range taken {
		if m.Type != "request.withdrawn" || m.Data.StateKey != "refund-17" || m.Data.Reason != want[m.Data.Interrupt] {
			t.Errorf("%+v", m)
		}
	}
	list, _, err := e.ListSettled(t.Context(), "acme", "", 0)
	if err != nil || len(list) != 2 {
		t.Fatalf("it pulled %+v, %v", list, err)
	}
	for _, a := range list {
		if !a.Withdrawn || a.Expired || a.Answer != nil || want[a.Interrupt] == "" || a.At.IsZero() {
			t.Errorf("it pulled %+v", a)
		}
	}
}
