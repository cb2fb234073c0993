package jsonlite_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fermata-go/fermata/internal/jsonlite"
)

type record struct {
	Name  string          `json:"name,omitempty"`
	Count int64           `json:"count,omitempty"`
	Yes   bool            `json:"yes,omitempty"`
	Any   json.RawMessage `json:"any,omitempty"`
	List  []string        `json:"list,omitempty"`
}

func write(r record) []byte {
	o := jsonlite.NewObject()
	o.String("name", r.Name)
	o.Int("count", r.Count)
	o.Bool("yes", r.Yes)
	o.Raw("any", r.Any)
	o.Strings("list", r.List)
	return o.End()
}

func read(data []byte) (record, error) {
	var out record
	r := jsonlite.NewReader(data)
	r.Object(func(name string) {
		switch name {
		case "name":
			out.Name = r.String()
		case "count":
			out.Count = r.Int()
		case "yes":
			out.Yes = r.Bool()
		case "any":
			out.Any = r.Raw()
		case "list":
			r.Array(func() { out.List = append(out.List, r.String()) })
		default:
			r.Raw()
		}
	})
	return out, r.Err()
}

func FuzzWrite_IsWhatGoReads(f *testing.F) {
	f.Add("plain", int64(7), true, "a", "b")
	f.Add("quote \" slash \\ tab \t nul \x00 é 🎵 <html>", int64(-1), false, "\xff", "\ufffd")
	f.Fuzz(func(t *testing.T, name string, count int64, yes bool, a, b string) {
		in := record{Name: name, Count: count, Yes: yes, Any: json.RawMessage(`{"x":[1,"]}",null]}`), List: []string{a, b}}
		var viaGo record
		if err := json.Unmarshal(write(in), &viaGo); err != nil {
			t.Fatalf("%s: %v", write(in), err)
		}
		viaUs, err := read(write(in))
		if err != nil || !reflect.DeepEqual(viaGo, viaUs) {
			t.Fatalf("got %+v, %v, want %+v", viaUs, err, viaGo)
		}
	})
}

func FuzzRead_AcceptsOnlyWhatGoReadsTheSame(f *testing.F) {
	for _, seed := range []string{
		`{"name":"x","count":1,"yes":true,"any":{},"list":["a"]}`, ` { "other" : [ {"a":"}"} , 1e5 ] } `, `{"name":"\u00e9\ud83c\udfb5"}`,
		`{"any":nul}`, `{"any":[1,]}`, `{"count":01}`, `{"count":1.5}`, `{"name":"`, `{}{}`, `{"name":"a\`, `{"any":"\x"}`, "{\"name\":\"\xff\"}", `{"yes":tru}`,
		`{"any":01}`, `{"any":-1}`, `{"any":0}`, `{"any":1x}`, `{"yes":truest}`, `{"yes":false,"any":10}`, `{"yes":`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := read(data)
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q is not JSON", data)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(data, &members) != nil {
			t.Fatalf("%q is not an object", data)
		}
		var want record
		if json.Unmarshal(data, &want) == nil && len(members) == countMembers(data) && want.Name != got.Name && members["name"] != nil && string(members["name"]) != "null" {
			t.Fatalf("%q: got %+v, want %+v", data, got, want)
		}
	})
}

// countMembers counts the members of the outermost object, including duplicates.
func countMembers(data []byte) int {
	n := 0
	r := jsonlite.NewReader(data)
	r.Object(func(string) { n++; r.Raw() })
	return n
}
