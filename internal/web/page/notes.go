package page

import (
	"net/http"
	"strings"
)

// noteCookie carries a message from a form to the next page: the key of a text that begins with
// "note.", never a text.
const (
	noteCookie = "fermata_note"
	notePrefix = "note."
	noteMaxAge = 60 // seconds
)

// leaveNote stores a message for the next page.
func (v *Visit) leaveNote(key string) {
	http.SetCookie(v.W, v.cookie(noteCookie, strings.TrimPrefix(key, notePrefix), noteMaxAge))
}

// note is a message about what a form did, and the request that it decided; "" for the one that
// the page shows.
type note struct{ Text, Request string }

// takeNotes returns the stored message and deletes it.
func (v *Visit) takeNotes() []note {
	c, err := v.Cookie(v.cookieName(noteCookie))
	if err != nil {
		return nil
	}
	http.SetCookie(v.W, v.cookie(noteCookie, "", -1))
	text, ok := v.Texts[notePrefix+c.Value]
	if !ok {
		return nil
	}
	after := v.URL.Query().Get("after")
	if after != "" { // the page shows another request than the one that was decided
		text += " " + v.T("note.next")
	}
	return []note{{text, after}}
}
