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

// takeNotes returns the stored message and deletes it.
func (v *Visit) takeNotes() []string {
	c, err := v.Cookie(v.cookieName(noteCookie))
	if err != nil {
		return nil
	}
	http.SetCookie(v.W, v.cookie(noteCookie, "", -1))
	text, ok := v.Texts[notePrefix+c.Value]
	if !ok {
		return nil
	}
	if v.URL.Query().Has("after") { // the page shows another request than the one that was decided
		text += " " + v.T("note.next")
	}
	return []string{text}
}
