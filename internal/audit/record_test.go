package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/internal/audit"
	"github.com/fermata-go/fermata/internal/golden"
)

// The format of stored records must not change, because records are kept for years. A new field
// must be omitted when empty.
func TestRecord_GoldenFileOfEachKind(t *testing.T) {
	head := audit.EmptyHead("acme")
	kinds := map[audit.Kind]bool{}
	for i, body := range bodies() {
		r := sample(i, body)
		entry, next, err := audit.Append(head, r)
		if err != nil {
			t.Fatalf("%s: %v", r.Kind(), err)
		}
		head = next
		file := filepath.Join("testdata", "v1", string(r.Kind())+".json")
		golden.Compare(t, file, string(entry.Raw)+"\n")
		read, err := audit.Parse(entry.Raw)
		if err != nil {
			t.Fatalf("%s: %v", r.Kind(), err)
		}
		r.Account, r.Seq, r.Prev = "acme", int64(i+1), read.Prev
		if !reflect.DeepEqual(read, r) {
			t.Errorf("%s was parsed as\n%+v, want\n%+v", r.Kind(), read, r)
		}
		kinds[r.Kind()] = true
	}
	files, err := filepath.Glob(filepath.Join("testdata", "v1", "*.json"))
	if err != nil || len(files) != len(kinds) {
		t.Errorf("there are %d golden files for %d kinds (%v)", len(files), len(kinds), err)
	}
}

// A field that no sample sets would be missing in the golden files too.
func TestRecord_SamplesUseEveryField(t *testing.T) {
	for _, body := range bodies() {
		checkFieldsSet(t, string(reflect.TypeOf(body).Name()), reflect.ValueOf(body))
	}
}

func checkFieldsSet(t *testing.T, path string, v reflect.Value) {
	t.Helper()
	if v.IsZero() {
		t.Errorf("%s is not set", path)
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && v.Type() != reflect.TypeFor[audit.Timestamp]() {
				checkFieldsSet(t, path+"."+f.Name, v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkFieldsSet(t, path+"[]", v.Index(i))
		}
	}
}

// A payload in a record could not be erased. So bodies have no type that could hold one: texts are
// short names, everything else is a digest.
func TestI7_BodiesHoldNoPayloads(t *testing.T) {
	for _, body := range bodies() {
		checkNoPayloadField(t, reflect.TypeOf(body).Name(), reflect.TypeOf(body))
	}
}

func checkNoPayloadField(t *testing.T, path string, typ reflect.Type) {
	t.Helper()
	switch typ.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int64:
	case reflect.Struct:
		if typ == reflect.TypeFor[audit.Timestamp]() {
			return
		}
		for i := range typ.NumField() {
			checkNoPayloadField(t, path+"."+typ.Field(i).Name, typ.Field(i).Type)
		}
	case reflect.Slice:
		if typ.Elem().Kind() == reflect.Uint8 {
			t.Errorf("%s can hold a payload", path)
		}
		checkNoPayloadField(t, path+"[]", typ.Elem())
	case reflect.Array:
		if typ != reflect.TypeFor[audit.Hash]() {
			t.Errorf("%s is a %s", path, typ)
		}
	default: // maps, interfaces, pointers
		t.Errorf("%s can hold a payload: %s", path, typ)
	}
}

func TestAppend_InvalidRecordReturnsErrRecord(t *testing.T) {
	good := sample(0, audit.RequestClaimed{})
	for name, change := range map[string]func(*audit.Record){
		"no nonce":                func(r *audit.Record) { r.Nonce = audit.Nonce{} },
		"no time":                 func(r *audit.Record) { r.Time = audit.Timestamp{} },
		"nanoseconds":             func(r *audit.Record) { r.Time = audit.Timestamp{Time: noon} },
		"another time zone":       func(r *audit.Record) { r.Time = audit.Timestamp{Time: r.Time.In(time.FixedZone("x", 3600))} },
		"year 10000":              func(r *audit.Record) { r.Time = audit.TimestampOf(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)) },
		"no body":                 func(r *audit.Record) { r.Body = nil },
		"no actor":                func(r *audit.Record) { r.Actor = audit.Actor{} },
		"no principal":            func(r *audit.Record) { r.Actor.Principal = "" },
		"unknown actor kind":      func(r *audit.Record) { r.Actor.Kind = "ghost" },
		"no UTF-8":                func(r *audit.Record) { r.Actor.Principal = "al\xffice" },
		"invalid UTF-8 in a list": func(r *audit.Record) { r.Body = audit.RequestEscalated{To: []string{"\xff"}} },
		"a payload":               func(r *audit.Record) { r.Location.Address = strings.Repeat("x", audit.MaxText+1) },
		"a decision without a verb": func(r *audit.Record) {
			r.Body = audit.RequestDecided{Settles: true}
		},
		"an unknown verb":             func(r *audit.Record) { r.Body = audit.RequestDecided{Verb: "nod"} },
		"a refusal without a reason":  func(r *audit.Record) { r.Body = audit.RequestRefused{} },
		"an effect without an action": func(r *audit.Record) { r.Body = audit.EffectBegun{Number: 1} },
		"an unknown effect state":     func(r *audit.Record) { r.Body = audit.EffectEnded{} },
		"an unknown delivery state":   func(r *audit.Record) { r.Body = audit.RequestDelivered{} },
		"a plain-text digest":         func(r *audit.Record) { r.Body = audit.RequestCommented{Text: audit.Digest{Sum: "hello", Payload: "p"}} },
		"a digest without a payload":  func(r *audit.Record) { r.Body = audit.RequestCommented{Text: audit.Digest{Sum: digest("p", "x").Sum}} },
		"a record that is too long": func(r *audit.Record) {
			r.Body = audit.PayloadsErased{Payloads: repeatText(20, strings.Repeat("x", audit.MaxText))}
		},
		"year 0 inside the body": func(r *audit.Record) {
			r.Body = audit.RequestSnoozed{Until: audit.TimestampOf(time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC))}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := good
			change(&r)
			head := audit.EmptyHead("acme")
			entry, next, err := audit.Append(head, r)
			if !errors.Is(err, audit.ErrRecord) || entry.Raw != nil || !next.Equal(head) {
				t.Errorf("Append = %s, %v; want ErrRecord and the head as it was", entry.Raw, err)
			}
		})
	}
	if _, _, err := audit.Append(audit.EmptyHead("ac\xffme"), good); !errors.Is(err, audit.ErrRecord) {
		t.Errorf("an account that is not UTF-8: %v", err)
	}
	if _, _, err := audit.Append(audit.EmptyHead("acme"), good); err != nil {
		t.Error(err)
	}
}

func repeatText(n int, text string) []string {
	var all []string
	for range n {
		all = append(all, text)
	}
	return all
}

// Accounts and names come from outside. They must round-trip unchanged.
func TestParse_RoundTrips(t *testing.T) {
	for _, name := range []string{"", "acme", `"quoted"`, `back\slash`, "new\nline", "tab\t", "nul\x00", "<b>&amp;", "\u2028\u2029", "äöü €", "🎼", "\ufffd", `\ufffd`, "\x7f"} {
		w := &appendedLog{head: audit.EmptyHead(name)}
		r := sample(0, audit.RequestDelegated{To: name + "!"})
		r.Actor.Principal = name + "?"
		w.append(t, r)
		got, err := audit.Parse(w.raw[0])
		if err != nil {
			t.Errorf("%q: %v", name, err)
			continue
		}
		if got.Account != name || got.Actor.Principal != name+"?" || got.Body != (audit.RequestDelegated{To: name + "!"}) {
			t.Errorf("%q was parsed as %+v", name, got)
		}
		if bytes.ContainsAny(w.raw[0], "\n\r") {
			t.Errorf("%q: a record of two lines", name)
		}
	}
}

func TestParse_AcceptsOneEncodingOnly(t *testing.T) {
	w := &appendedLog{head: audit.EmptyHead("acme")}
	w.append(t, sample(0, audit.RequestDelegated{To: "bob"}))
	good := string(w.raw[0])
	if _, err := audit.Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"another version":        {`"v":1`, `"v":2`},
		"another order":          {`{"v":1,"seq":1`, `{"seq":1,"v":1`},
		"seq 0":                  {`"seq":1`, `"seq":0`},
		"seq with a zero":        {`"seq":1`, `"seq":01`},
		"negative seq":           {`"seq":1`, `"seq":-1`},
		"seq as text":            {`"seq":1`, `"seq":"1"`},
		"seq too large":          {`"seq":1`, `"seq":9223372036854775808`},
		"upper case hex":         {`ff","kind"`, `FF","kind"`},
		"short nonce":            {`ff","kind"`, `","kind"`},
		"another case":           {`"to":"bob"`, `"To":"bob"`},
		"a duplicate member":     {`"to":"bob"`, `"to":"bob","to":"eve"`},
		"an unknown member":      {`"to":"bob"`, `"to":"bob","x":1`},
		"an empty member":        {`"to":"bob"`, `"to":"bob","reason":{"sum":"","payload":""}`},
		"an escape":              {`"bob"`, `"b\u006fb"`},
		"an escape in account":   {`"acme"`, `"\u0061cme"`},
		"white space":            {`"body":`, `"body": `},
		"a new line":             {`"body":`, "\"body\":\n"},
		"another type":           {`"to":"bob"`, `"to":7`},
		"a body of another kind": {`request.delegated`, `request.snoozed`},
		"no place":               {`"place":`, `"plaice":`},
		"a time without Z":       {`123456Z"`, `123456+00:00"`},
		"nanoseconds":            {`123456Z"`, `123456789Z"`},
		"the 31st of November":   {`2026-11-14`, `2026-11-31`},
		"broken UTF-8":           {`"bob"`, "\"b\xffb\""},
		"trailing data":          {`"bob"}}`, `"bob"}}x`},
		"nothing":                {good, ``},
		"too long":               {good, good + strings.Repeat(" ", audit.MaxRecord)},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: nothing was changed", name)
		}
		if r, err := audit.Parse([]byte(bad)); !errors.Is(err, audit.ErrUnreadable) {
			t.Errorf("%s: Parse = %+v, %v; want ErrUnreadable", name, r, err)
		}
	}
	newer := strings.Replace(good, "request.delegated", "request.teleported", 1)
	if _, err := audit.Parse([]byte(newer)); !errors.Is(err, audit.ErrUnknownKind) {
		t.Errorf("a kind of a newer version: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	head := audit.EmptyHead("acme")
	for i, body := range bodies() {
		entry, next, err := audit.Append(head, sample(i, body))
		if err != nil {
			f.Fatal(err)
		}
		head = next
		f.Add(entry.Raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := audit.Parse(raw)
		if err != nil {
			if !errors.Is(err, audit.ErrUnreadable) && !errors.Is(err, audit.ErrUnknownKind) {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("%q was accepted but is not JSON", raw)
		}
		if bytes.ContainsAny(raw, "\n\r") {
			t.Fatalf("%q would be two lines of an export", raw)
		}
		if r.Seq < 1 || r.Kind() == "" || r.Nonce == (audit.Nonce{}) {
			t.Fatalf("%q was parsed as %+v", raw, r)
		}
	})
}
