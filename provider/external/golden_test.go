package external_test

import (
	"bytes"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/fermata-go/fermata/provider"
	"github.com/fermata-go/fermata/store"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(want, got) {
		t.Errorf("%s differs; got:\n%s", path, got)
	}
}

// What is sent and what is stored is read by programs that we do not know, and by later versions of this one.
func TestGolden_WhatIsSentAndWhatIsStored(t *testing.T) {
	for name, say := range map[string]func(provider.Question) provider.Answer{
		"answered": func(q provider.Question) provider.Answer { return says(q, `{"action":"approve"}`) },
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
		golden(t, name+".json", append(body, '\n'))
		golden(t, name+".id.txt", []byte(id+"\n"))
		saved, err := o.run.State.Load(t.Context(), store.Key{Account: "acme", Run: "run_1"})
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "state.json", append(bytes.Clone(saved.Parts["request"]), '\n'))
	}
}
