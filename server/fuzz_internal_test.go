package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/internal/strictjson"
	"github.com/fermata-go/fermata/store"
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

// A cursor is accepted only if the server could have created it.
func FuzzCursors(f *testing.F) {
	page, err := paged([]int{1, 2}, 1, func(n int) int { return n }, func(int) any { return store.RunPosition{Created: time.Unix(1, 0).UTC(), ID: "run_1"} })
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{page.Body.Next, "", "x", "e30", "eyJJRCI6MX0", "eyJpZCI6ImEifQ", "bnVsbA", strings.Repeat("W1tb", 100), "\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cursor string) {
		var run store.RunPosition
		var asked requestCursor
		for _, err := range []error{readCursor(cursor, &run), readCursor(cursor, &asked)} {
			if p, ok := errors.AsType[*Problem](err); err != nil && (!ok || p.Code != "bad_request" || strings.Contains(p.Detail, cursor) && len(cursor) > 10) {
				t.Fatalf("%q: %v", cursor, err)
			}
		}
	})
}

// No header makes a caller wait longer than allowed.
func FuzzHeaders(f *testing.F) {
	for _, seed := range []string{"", "respond-async", "wait=10", `wait="60"`, "wait=61", "wait=-1", "wait=9223372036854775808", "wait=1, wait=2", ";;,,=", "text/event-stream;q=0", "*/*"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, header string) {
		if wait, err := parsePrefer(header); err == nil && (wait < -1 || wait > maxWaitSeconds*time.Second) {
			t.Fatalf("%q waits %v", header, wait)
		}
		if wantsStream(header) && !strings.Contains(strings.ToLower(header), "text/event-stream") {
			t.Fatalf("%q wants a stream", header)
		}
	})
}

// The error of an invalid answer does not contain the answer.
func FuzzRedactAnswerError(f *testing.F) {
	for _, seed := range []string{"secret", "validating root: type: x", `" want "`, "does not equal any of: ", "\n", "validating "} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, said string) {
		if len(said) < 4 {
			return
		}
		for _, text := range []string{
			`validating root: type: ` + said + ` has type "string", want "object"`, `validating root: validating /properties/a: enum: ` + said + ` does not equal any of: [a b]`,
			`validating /properties/a: minLength: "` + said + `" contains 1 Unicode code points, fewer than 2`, `validating root: unexpected additional properties ["` + said + `"]`,
		} {
			known := strings.Replace(text, said, "", 1) // the schema's own text
			if field := redactAnswerError(errors.New(text)); strings.Contains(field.Message, said) && !strings.Contains(known, said) && !strings.Contains("it does not match the schema", said) {
				t.Fatalf("%q was told: %+v", said, field)
			}
		}
	})
}

// An unexpected member is named as the cause.
func TestRedactAnswerError_StatesWhatTheRuleExpects(t *testing.T) {
	for text, want := range map[string]string{
		`validating root: unexpected additional properties ["zz"]`:                           "it does not match the schema: it has a member that the schema does not know",
		`validating root: validating /properties/i: maximum: 11/1 is greater than 10.000000`: "it does not match the schema: maximum: it is greater than 10",
	} {
		if got := redactAnswerError(errors.New(text)).Message; got != want {
			t.Errorf("%s becomes %s", text, got)
		}
	}
}
