package external_test

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/fermata-go/fermata/executor"
	"github.com/fermata-go/fermata/store"
	"github.com/fermata-go/fermata/store/memory"
)

// Receivers that take a message and say nothing are waited for. Whoever else has something to do does not wait for them, too.
func TestExecutor_ReceiversThatHangHoldUpNobody(t *testing.T) {
	over := make(chan struct{})
	hung := receive(t, func(http.ResponseWriter, *http.Request) { <-over })
	defer close(over)
	good := receive(t, nil)
	e := newExecutor(t, memory.NewRuns(nil), newProvider(t, nil), func(c *executor.Config) { c.Workers = 2 })
	short := func(url string) string {
		return `{"kind":"refund","data":{"order":17},"timeout":1,"callback":{"url":"` + url + `"}}`
	}
	for i := range 10 {
		ask(t, e, "hung-"+strconv.Itoa(i), short(hung.URL))
	}
	ask(t, e, "good", short(good.URL))
	e.Start()
	begun := time.Now()
	for event, err := range e.Follow(t.Context(), "acme", "good", store.Event{}) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Kind == store.EventFailed { // nobody answered, and the agent has heard of it
			break
		}
	}
	if took := time.Since(begun); took > 8*time.Second {
		t.Errorf("it took %v until a receiver heard that nobody answered", took)
	}
}
