package app

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
)

// closedRoom is a channel that rejects every message.
type closedRoom struct{}

func (closedRoom) Kind() string { return "room" }
func (closedRoom) Send(context.Context, channel.Message) (string, error) {
	return "", &channel.Error{Code: "room_closed", Permanent: true, Err: errors.New("secret")}
}

func TestDeliveries_ListHealthAndSendAgain(t *testing.T) {
	writeFiles(t, map[string]string{"routes.yaml": "routes:\n- name: default\n  steps: [{at: 0s, notify: [\"room:ops\"]}, {at: 12h, expire: stale}]\n"})
	p := &serve.Program{Program: new(cli.Program)}
	Channel(closedRoom{})(p)
	r, err := serve.Start(t.Context(), p, settingsOf(t, "FERMATA_DESK_ROUTES_FILE=routes.yaml"), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	key, kept, err := authn.NewKey("acme", "ann", authn.RoleAdmin, time.Time{})
	if err == nil {
		err = operatorcmd.AddKey(t.Context(), r.Store, kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("FERMATA_URL", r.URL)
	t.Setenv("FERMATA_TOKEN", key)
	if code, out, _ := call(t, "deliveries"); code != cli.ExitOK || !strings.Contains(out, "no deliveries") {
		t.Errorf("%d %s", code, out)
	}
	if _, err := r.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "refund-1", Graph: "external:request", Input: json.RawMessage(`{"kind":"refund","data":{"amount":12}}`)}); err != nil {
		t.Fatal(err)
	}
	var list []api.Delivery
	eventually(t, "the delivery is given up", func() bool {
		code, out, errOut := call(t, "deliveries", "--state", "dead", "--channel", "room", "--json")
		if code != cli.ExitOK || json.Unmarshal([]byte(out), &list) != nil {
			t.Fatalf("%d %s%s", code, out, errOut)
		}
		return len(list) == 1
	})
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"deliveries"}, cli.ExitOK, "room:ops  notify  " + list[0].Request + "  dead (room_closed)"},
		{[]string{"deliveries", "--request", list[0].Request, "--limit", "1"}, cli.ExitOK, "room:ops"},
		{[]string{"deliveries", "--channel", "slack"}, cli.ExitOK, "no deliveries"},
		{[]string{"channels"}, cli.ExitOK, "room  failing (room_closed)  0 sent, 0 queued, 0 failed, 1 given up  last failure "},
		{[]string{"deliveries", "send-again", list[0].ID}, cli.ExitOK, "  queued"},
		{[]string{"deliveries", "send-again", "none"}, cli.ExitNotFound, "not_found"},
		{[]string{"deliveries", "--state", "lost"}, cli.ExitUsage, "--state"},
		{[]string{"deliveries", "--limit", "0"}, cli.ExitUsage, "at least 1"},
	} {
		code, out, errOut := call(t, c.args...)
		if code != c.code || !strings.Contains(out+errOut, c.want) || strings.Contains(out+errOut, "secret") {
			t.Errorf("fermata %q: %d, no %q in\n%s%s", c.args, code, c.want, out, errOut)
		}
	}
}
