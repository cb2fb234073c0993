package app

import (
	"encoding/json"
	"testing"

	"github.com/fermata-go/fermata"
	"github.com/fermata-go/fermata/api"
)

// The Go client lets the server recognize identical requests.
func TestClient_IdenticalOpenRequestIsReturned(t *testing.T) {
	t.Chdir(t.TempDir())
	e := openTable(t, "sqlite:f.db")
	create := func(again bool) fermata.NeedsInput {
		t.Helper()
		outcome, err := e.client("bot").CreateRequest(t.Context(), api.CreateRequest{Kind: "ticket", Data: json.RawMessage(`{"verdict":"ask"}`), AllowDuplicate: again})
		waiting, ok := outcome.(fermata.NeedsInput)
		if err != nil || !ok {
			t.Fatalf("%#v, %v", outcome, err)
		}
		return waiting
	}
	first, second, third := create(false), create(false), create(true)
	if first.Deduplicated || !second.Deduplicated || second.Run != first.Run || third.Deduplicated || third.Run == first.Run {
		t.Errorf("%+v, %+v, %+v", first, second, third)
	}
}
