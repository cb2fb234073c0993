package external_test

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/internal/store/memory"
	"github.com/fermata-go/fermata/provider/external"
)

// Regression: slow receivers must not block other work, however many there are: with six hundred
// hanging receivers, a server did no background work for minutes, for all accounts.
func TestExecutor_HangingReceiversDoNotBlockOthers(t *testing.T) {
	over := make(chan struct{})
	hung := receive(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	good := receive(t, nil)
	e := newExecutor(t, memory.NewStore(nil), newProvider(t, nil), func(c *executor.Config) { c.Workers, c.Log = 2, slog.New(slog.DiscardHandler) })
	short := func(url string) string {
		return `{"kind":"refund","data":{"order":17},"timeout":1,"callback":{"url":"` + url + `"}}`
	}
	for i := range 600 {
		ask(t, e, "hung-"+strconv.Itoa(i), short(hung.URL))
	}
	ask(t, e, "good", short(good.URL))
	e.StartWorkers()
	begun := time.Now()
	for event, err := range e.FollowEvents(t.Context(), "acme", "good", store.Event{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == store.EventFailed { // the request expired, and the agent was notified
			break
		}
	}
	if took := time.Since(begun); took > 5*time.Minute {
		t.Errorf("it took %v until a receiver was notified of the expiry", took)
	}
}

// An account with many deliveries in progress gets a shorter timeout for each. Other accounts do
// not.
func TestDeliver_WhoHasManyOnTheirWayIsWaitedForLess(t *testing.T) {
	over := make(chan struct{})
	var come atomic.Int64
	hung := receive(t, func(http.ResponseWriter, *http.Request) {
		come.Add(1)
		<-over
	})
	p := newProvider(t, nil)
	p.SetTimeout(time.Hour)
	var all sync.WaitGroup
	send := func(account, run string, failed *atomic.Int64) {
		o := begin(t, p, `{"kind":"refund","data":{"order":17},"callback":{"url":"`+hung.URL+`"}}`)
		o.run.Account, o.run.ID = account, run
		q := o.asks()
		all.Go(func() {
			if _, err := o.execute(says(q, "true")); err != nil {
				failed.Add(1)
			}
		})
	}
	wait := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	var patient, hurried, others atomic.Int64
	for i := range external.Crowd {
		send("acme", "run_"+strconv.Itoa(i), &patient)
	}
	wait("they do not come", func() bool { return come.Load() == external.Crowd })
	send("acme", "run_more", &hurried)
	send("beta", "run_1", &others)
	wait("one more of the same account has the full timeout", func() bool { return hurried.Load() == 1 })
	if patient.Load()+others.Load() > 0 {
		t.Errorf("%d and %d others have a shorter timeout", patient.Load(), others.Load())
	}
	close(over)
	all.Wait()
}
