package slack

import (
	"encoding/json"
	"testing"
)

// The text of a message is what a person reads in it, in order, and without buttons.
func TestScreen_TextIsWhatThePersonReads(t *testing.T) {
	const message = `{"blocks":[
		{"type":"header","text":{"type":"plain_text","text":"refund"}},
		{"type":"section","fields":[{"type":"plain_text","text":"amount"},{"type":"plain_text","text":"a &lt; b &amp; c"}]},
		{"type":"context","elements":[{"type":"plain_text","text":"Asked by bot"},{"type":"image","alt_text":"x"}]},
		{"type":"rich_text","elements":[{"type":"rich_text_preformatted","elements":[{"type":"text","text":"a long text"}]}]},
		{"type":"actions","elements":[{"type":"button","text":{"type":"plain_text","text":"Approve"}}]}]}`
	const modal = `{"title":{"type":"plain_text","text":"Edit and approve"},"blocks":[
		{"type":"input","label":{"type":"plain_text","text":"amount"},"hint":{"type":"plain_text","text":"in cents"},"element":{"type":"number_input","initial_value":"12"}},
		{"type":"input","label":{"type":"plain_text","text":"currency"},"element":{"type":"static_select","initial_option":{"text":{"type":"plain_text","text":"EUR"},"value":"0"}}}]}`
	for data, want := range map[string]string{
		message: "refund\namount\na < b & c\nAsked by bot\na long text",
		modal:   "Edit and approve\namount\nin cents\n12\ncurrency\nEUR",
		`{}`:    "",
	} {
		var s screen
		if err := json.Unmarshal([]byte(data), &s); err != nil {
			t.Fatal(err)
		}
		if got := s.text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
