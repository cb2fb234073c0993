package runs_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/fermata-go/fermata/dialog"
	"github.com/fermata-go/fermata/internal/store"
)

// Two servers on one database get the same messages of one conversation at the same time, as a
// client sends them that repeats a call. Each message counts once, and so does each answer.
func TestReplicas_MessagesAtTheSameTimeCountOnce(t *testing.T) {
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			shared := openStore(t, kind)
			one, two := newWorld(t, shared), &world{graph: assistant(t), input: textInput, t: t}
			two.store, two.sealer, two.clock, two.machine = shared, one.sealer, one.clock, one.machine
			two.start()
			t.Cleanup(two.stop)
			for n, text := range []string{"mail anna", "sales", "mail anna subject", "legal", "lunch"} {
				var both sync.WaitGroup
				for _, w := range []*world{one, two, one} {
					both.Go(func() {
						_, err := w.handler.Message(t.Context(), account, "c", dialog.Message{ID: fmt.Sprint("m", n), Text: text, Actor: user})
						if err != nil && !errors.Is(err, store.ErrStale) {
							t.Error(err)
						}
					})
				}
				both.Wait()
			}
			r, err := two.handler.Get(t.Context(), account, "c")
			if err != nil {
				t.Fatal(err)
			}
			said := make(map[string]int)
			for _, line := range r.Lines {
				if line.From != dialog.ByHandler {
					said[line.Text]++
				}
			}
			for _, text := range []string{"mail anna", "sales", "Did: mail anna", "mail anna subject", "legal", "lunch", "Did: mail anna subject"} {
				if said[text] != 1 {
					t.Errorf("%q is there %d times", text, said[text])
				}
			}
			if len(r.Runs) != 2 || len(r.Questions) != 3 {
				t.Errorf("%d runs, %d questions", len(r.Runs), len(r.Questions))
			}
			for _, a := range r.Questions {
				if a.Status != dialog.Answered || a.Undelivered != "" {
					t.Errorf("%s is %s %s", a.ID, a.Status, a.Undelivered)
				}
			}
		})
	}
}
