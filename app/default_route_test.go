package app

import (
	"encoding/json"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fermata-go/fermata/internal/desk"
	"github.com/fermata-go/fermata/internal/executor"
	"github.com/fermata-go/fermata/internal/requirement"
	"github.com/fermata-go/fermata/internal/store"
)

// The default route pages oncall:default only if that reaches a person; otherwise no one can
// escalate, and no delivery fails.
func TestServe_DefaultRoutePagesOnlyWithAScheduleAndAChannel(t *testing.T) {
	writeFiles(t, map[string]string{"key": strings.Repeat("k", 64), "password": "hush"})
	s := startMail(t)
	host, port, err := net.SplitHostPort(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	mail := []string{
		"FERMATA_CHANNELS_EMAIL_HOST=" + host, "FERMATA_CHANNELS_EMAIL_PORT=" + port, "FERMATA_CHANNELS_EMAIL_CA_FILE=" + filepath.ToSlash(s.certFile), "FERMATA_CHANNELS_EMAIL_USERNAME=fermata",
		"FERMATA_CHANNELS_EMAIL_PASSWORD_FILE=password", "FERMATA_CHANNELS_EMAIL_FROM=fermata@example.com", "FERMATA_CHANNELS_EMAIL_LINK_KEY_FILE=key", "FERMATA_LISTEN_PUBLIC_URL=http://fermata.test",
	}
	const schedule = `FERMATA_ONCALL={default: {rota: [ann], start: 2026-01-05 09:00, days: 7, timeZone: UTC}}`
	for name, c := range map[string]struct {
		environ []string
		pages   bool
	}{
		"stock": {nil, false}, "schedule": {[]string{schedule}, false}, "channel": {mail, false}, "both": {append(slices.Clone(mail), schedule), true},
	} {
		r, _ := startOf(t, settingsOf(t, c.environ...))
		input := json.RawMessage(`{"kind":"approval","data":{"action":"refund","args":{"amount":120}}}`)
		if _, err := r.Run(t.Context(), executor.RunRequest{Account: "acme", StateKey: "refund-1", Graph: "external:request", Input: input}); err != nil {
			t.Fatal(name, err)
		}
		open, err := r.ListRequests(t.Context(), "acme", store.InboxFilter{State: store.InterruptPending})
		if err != nil || len(open) != 1 {
			t.Fatal(name, open, err)
		}
		_, escalates := open[0].Request.NextEscalation()
		verbs, err := desk.AllowedVerbs(*open[0].Request, "", nil)
		pages := slices.ContainsFunc(open[0].Request.Route.Steps, func(s desk.Step) bool { return slices.Equal(s.Page, []string{"oncall:default"}) })
		listed := slices.ContainsFunc(r.Routes()["default"].Steps, func(s desk.Step) bool { return len(s.Page) > 0 })
		if err != nil || pages != c.pages || escalates != c.pages || slices.Contains(verbs, requirement.VerbEscalate) != c.pages || listed != c.pages {
			t.Errorf("%s: pages %t, listed %t, escalates %t, %v, %v", name, pages, listed, escalates, verbs, err)
		}
	}
}
