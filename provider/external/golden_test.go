package external_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/fermata-go/fermata/internal/golden"
	"github.com/fermata-go/fermata/internal/store"
	"github.com/fermata-go/fermata/provider"
)

// Sent and stored forms are read by unknown programs, and by later versions of this one.
func TestGolden_SentAndStoredForms(t *testing.T) {
	for name, say := range map[string]func(provider.Interrupt) provider.Answer{
		"answered": func(q provider.Interrupt) provider.Answer { return says(q, `{"action":"approve"}`) },
		"expired":  lapses,
	} {
		var body []byte
		var id string
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ = io.ReadAll(r.Body)
			id = r.Header.Get("webhook-id")
		}))
		o := begin(t, newProvider(t, nil), `{"kind":"refund","data":{"order":17},"answerSchema":`+action+`,"timeout":3600,"callback":{"url":"`+server.URL+`"}}`)
		q := o.asks()
		if _, err := o.execute(say(q)); err != nil {
			t.Fatal(err)
		}
		server.Close()
		golden.Compare(t, "testdata/"+name+".json", append(body, '\n'))
		golden.Compare(t, "testdata/"+name+".id.txt", id+"\n")
		saved, err := o.run.State.Load(t.Context(), store.Key{Account: "acme", Run: "run_1"})
		if err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/state.json", append(bytes.Clone(saved.Parts["request"]), '\n'))
	}
}
