package app

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fermata-go/fermata/api"
	"github.com/fermata-go/fermata/channel/webpush"
	"github.com/fermata-go/fermata/client"
	"github.com/fermata-go/fermata/internal/cli"
	"github.com/fermata-go/fermata/internal/cli/operatorcmd"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/pushfake"
	"github.com/fermata-go/fermata/internal/serve"
	"github.com/fermata-go/fermata/internal/server/authn"
)

func TestChannelsWebPushKey_CreatesAKeyForTheConfiguration(t *testing.T) {
	writeFiles(t, map[string]string{"fermata.yaml": "channels: {webpush: {keyFile: push.key, subject: 'mailto:ops@example.com'}}\n"})
	code, out, errOut := call(t, "channels", "webpush-key", "push.key")
	if code != cli.ExitOK {
		t.Fatalf("%d %s", code, errOut)
	}
	text, err := os.ReadFile("push.key")
	if err != nil {
		t.Fatal(err)
	}
	key, err := webpush.ParseKey(string(text))
	if err != nil || !strings.Contains(out, key.Public()) || strings.Contains(out, key.Private()) {
		t.Errorf("%v: printed %s", err, out)
	}
	if info, err := os.Stat("push.key"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if code, _, errOut := call(t, "channels", "webpush-key", "push.key"); code != cli.ExitUsage || !strings.Contains(errOut, "already exists") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, _, errOut := call(t, "config", "check", "fermata.yaml"); code != cli.ExitOK {
		t.Errorf("%d %s", code, errOut)
	}
	c := settingsOf(t, "FERMATA_CHANNELS_WEBPUSH_KEY_FILE=push.key", "FERMATA_CHANNELS_WEBPUSH_SUBJECT=https://example.com")
	all, err := (&serve.Program{Program: new(cli.Program)}).OpenChannels(c, nil)
	if err != nil || serve.WebPushOf(all) == nil || serve.WebPushOf(all).PublicKey() != key.Public() {
		t.Errorf("%v, %v", all, err)
	}
}

// A browser that a person has subscribed is notified of a new request by the default route.
func TestServe_WebPushOfTheConfiguration(t *testing.T) {
	writeFiles(t, nil)
	if code, _, errOut := call(t, "channels", "webpush-key", "push.key"); code != cli.ExitOK {
		t.Fatal(errOut)
	}
	r, _ := startOf(t, settingsOf(t, "FERMATA_CHANNELS_WEBPUSH_KEY_FILE=push.key", "FERMATA_LISTEN_PUBLIC_URL=https://fermata.example.com", "FERMATA_CHANNELS_WEBPUSH_ALLOW=127.0.0.1"))
	key, kept, err := authn.NewKey("acme", "ann", authn.RoleApprover, time.Time{})
	if err == nil {
		err = operatorcmd.AddKey(t.Context(), r.Store, kept)
	}
	if err != nil {
		t.Fatal(err)
	}
	ann, err := client.New(r.URL, key)
	if err != nil {
		t.Fatal(err)
	}
	server, err := ann.PushKey(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	service := pushfake.New()
	peer := httptest.NewServer(service)
	t.Cleanup(peer.Close)
	b := service.Subscribe(peer.URL, server.PublicKey)
	if _, err := ann.AddPushSubscription(t.Context(), api.AddPushSubscription{Name: "Laptop", Endpoint: b.Endpoint, Keys: api.PushKeys{P256DH: b.P256DH, Auth: b.Auth}}); err != nil {
		t.Fatal(err)
	}
	input := json.RawMessage(`{"kind":"approval","data":{"action":"refund","args":{"amount":120}}}`)
	if _, err := r.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "refund-1", Graph: "external:request", Input: input}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the browser is notified", func() bool { return len(service.Messages(b)) == 1 })
	if m := service.Messages(b)[0]; !strings.Contains(string(m.Data), "amount: 120") || m.TTL < 23*time.Hour {
		t.Errorf("%s, TTL %v", m.Data, m.TTL)
	}
	page, err := ann.Deliveries(t.Context(), client.DeliveryQuery{Channel: webpush.Kind})
	if err != nil || len(page.Items) != 1 || strings.Contains(page.Items[0].Address, b.Auth) {
		t.Errorf("%+v, %v", page, err)
	}
}
