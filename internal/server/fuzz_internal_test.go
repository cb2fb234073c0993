package server

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/strictjson"
)

// decodes checks the decoding of a body. An accepted body has one meaning: it survives a round
// trip, and a case-sensitive decoder reads the same.
func decodes[T any](t *testing.T, data []byte) {
	t.Helper()
	var got, strict, again T
	if unmarshal(data, &got) != nil {
		return
	}
	if !utf8.Valid(data) || strictjson.Check(data) != nil {
		t.Fatalf("%q was taken", data)
	}
	if strictjson.Decode(data, &strict) == nil && !reflect.DeepEqual(got, strict) {
		t.Fatalf("%q is %+v to one reader and %+v to another", data, got, strict)
	}
	written, err := json.Marshal(got)
	if err != nil {
		t.Fatalf("%q cannot be encoded: %v", data, err)
	}
	if err := unmarshal(written, &again); err != nil {
		t.Fatalf("%q became %q, which is rejected: %v", data, written, err)
	}
	if rewritten, err := json.Marshal(again); err != nil || !bytes.Equal(rewritten, written) {
		t.Fatalf("%q became %q and then %q", data, written, rewritten)
	}
}

func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{"graphId":"inproc:a","stateKey":"k","input":{"n":9007199254740993}}`, `{"stateKey":"k","resumeId":"1","resumeTargets":{"int_1":{"a":1}},"shown":{"int_1":"d"}}`,
		`{"resumeId":"1","answer":null,"shown":"x"}`, `{"kind":"k","data":[1e400,0.1e-999],"timeout":"1h","callback":{"url":"http://x"}}`,
		`{"graphId":"a","graphId":"b"}`, `{"GraphId":"a"}`, `{"\u0067raphId":"a","graphId":"b"}`, `{"a":"\ud800"}`, `{}{}`, "{\"graphId\":\"\xff\"}", `null`, `[]`, ` `, "\ufeff{}",
		`{"shown":{"K":"a","\u212a":"b"}}`, strings.Repeat(`{"input":`, 200), `{"input":1}` + strings.Repeat(" ", 100), `{"supersede":1}`, `{"answer":1e999999999}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		decodes[api.Chat](t, data)
		decodes[api.Decide](t, data)
		decodes[api.CreateRequest](t, data)
	})
}
