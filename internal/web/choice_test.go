package web_test

import (
	"net/http"
	"strings"
	"testing"
)

// A choice shows its options, and the form of its answer offers them.
func TestChoice_OffersTheOptionsOfTheQuestion(t *testing.T) {
	s := open(t)
	id := ask(t, s, "inproc:restore-backup", "restore-1", `{"service":"orders"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/requests/"+id), http.StatusOK, "Which backup of orders should be restored?", "Last night, 02:00", "complete, loses six hours of orders", "07:45")
	form := b.Get("/requests/" + id + "/respond")
	want(t, form, http.StatusOK, `<input type="radio" name="s/choice" value="1"`, "This morning, 07:45 – taken during the incident, not verified")
	want(t, b.Post("/requests/"+id+"/respond", hidden(form, "op", "send")...), http.StatusUnprocessableEntity)
	want(t, b.Follow(b.Post("/requests/"+id+"/respond", hidden(form, "s/choice", "1", "op", "send")...)), http.StatusOK, "Answered by ann")
	if got := b.Get("/api/v1/requests/" + id).Body; !strings.Contains(got, `"choice":"07:45"`) {
		t.Errorf("%s", got)
	}
}

// A form shows why it is asked and which fields the answer has, in words. Afterwards the page says
// what became of the run.
func TestForm_ShowsTheReasonAndItsFields(t *testing.T) {
	s := open(t)
	id := ask(t, s, "inproc:register-supplier", "s-1", `{"name":"Blum"}`)
	b := s.SignIn("ann")
	want(t, b.Get("/requests/"+id), http.StatusOK, "<details class=\"fold\" open>", "An invoice arrived from a supplier", "To fill in: legal name, iban, currency, payment days")
	form := b.Get("/requests/" + id + "/respond")
	want(t, form, http.StatusOK, ">payment days")
	fields := hidden(form, "op", "send", "v/legalName", "Blum AG", "v/iban", "DE1", "s/currency", "0", "v/paymentDays", "30")
	want(t, b.Follow(b.Post("/requests/"+id+"/respond", fields...)), http.StatusOK, "Answered by ann", `href="/runs/s-1">Run: Completed</a>`)
}

// The form about an effect in doubt says what each answer causes, and offers no bare true and
// false.
func TestDoubt_AnswersSayWhatTheyCause(t *testing.T) {
	s := openDesk(t)
	id := ask(t, s, "inproc:payout", "payout-1", `{"supplier":"Blum","amount":1840,"currency":"EUR"}`)
	form := s.SignIn("ann").Get("/requests/" + id + "/respond")
	want(t, form, http.StatusOK, "Did it happen?", "Yes, it happened. Nothing is done again.", "No, it did not happen. It is done now.", "Receipt of the target")
	if strings.Contains(form.Body, "<span>true</span>") || strings.Contains(form.Body, ">happened") {
		t.Error(form.Body)
	}
}
