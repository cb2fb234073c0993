package web_test

import (
	"net/http"
	"strings"
	"testing"
)

// The form works without scripts, and keeps what a person typed if it is not valid.
func TestMe_NotificationSettings(t *testing.T) {
	s := open(t)
	b := s.SignIn("ann")
	want(t, b.Get("/me"), http.StatusOK, "Quiet hours", "Out of office", "You have not linked a channel yet.")
	saved := b.Post("/me/notifications", "quiet", "1", "zone", "Europe/Zurich", "from", "21:30", "to", "06:45", "day", "sat", "hold", "1", "urgent", "2",
		"awayfrom", "2026-12-24T08:00", "awayto", "2027-01-02T08:00", "delegate", "bob <b>")
	if saved.Status != http.StatusSeeOther {
		t.Fatalf("%d %.500s", saved.Status, saved.Body)
	}
	want(t, b.Get("/me"), http.StatusOK, "Your notifications are saved.", `name="quiet" value="1" checked`, `value="21:30"`, `value="06:45"`, `value="sat" checked`, `name="hold" value="1" checked`, `<option value="2" selected>`,
		`name="awayfrom" value="2026-12-24T08:00"`, `value="bob &lt;b&gt;"`)
	if got := b.Get("/me"); strings.Contains(got.Body, `value="sun" checked`) {
		t.Error("a day was added")
	}
	want(t, b.Post("/me/notifications", "quiet", "1", "zone", "Mars", "from", "21:30", "to", "06:45", "day", "sat"), http.StatusBadRequest, `role="alert"`, "Mars", `value="21:30"`)
	want(t, b.Post("/me/notifications", "quiet", "1", "zone", "UTC", "from", "21:30", "to", "06:45"), http.StatusBadRequest, "at least one day")
	want(t, b.Post("/me/notifications", "awayfrom", "soon"), http.StatusBadRequest, "first and a last time")
	if got := s.SignIn("bob").Get("/me"); strings.Contains(got.Body, "2026-12-24") {
		t.Error("another person sees the absence")
	}
	if got := b.Post("/me/notifications"); got.Status != http.StatusSeeOther || strings.Contains(b.Get("/me").Body, "2026-12-24") {
		t.Errorf("an empty form: %d", got.Status)
	}
}
