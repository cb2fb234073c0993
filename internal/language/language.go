// Package language finds the language of the person at a browser.
package language

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// The languages of the pages.
const (
	English = "en"
	German  = "de"
)

// All are the languages of the pages.
var All = []string{English, German}

// conversations are the languages of conversations.
var conversations = []string{English, German, "fr", "es"}

// Cookie is the name of the cookie with the language that the person has chosen.
const Cookie = "fermata_language"

// Of returns the language that the person has chosen, or the one that the browser prefers, or
// English.
func Of(r *http.Request) string { return cmp.Or(Chosen(r), Preferred(acceptLanguage(r)), English) }

// OfConversation returns the language that the person has chosen for the pages, or the language of
// conversations that the browser prefers; "" if it prefers none of them.
func OfConversation(r *http.Request) string {
	return cmp.Or(Chosen(r), preferred(acceptLanguage(r), conversations))
}

// Chosen returns the language that the person has chosen; "" if the browser decides.
func Chosen(r *http.Request) string {
	if c, err := r.Cookie(Cookie); err == nil && slices.Contains(All, c.Value) {
		return c.Value
	}
	return ""
}

func acceptLanguage(r *http.Request) string {
	return strings.Join(r.Header.Values("Accept-Language"), ",")
}

// Preferred returns the language of the pages that an Accept-Language header prefers; "" if it
// prefers none of them.
func Preferred(header string) string { return preferred(header, All) }

// preferred returns the one of some languages with the highest weight in a header such as
// "de-AT,de;q=0.9,en;q=0.5", the first one of equal weights; "" without one.
func preferred(header string, among []string) (best string) {
	highest := 0.0
	for entry := range strings.SplitSeq(header, ",") {
		tag, parameter, _ := strings.Cut(entry, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if !slices.Contains(among, primary) {
			continue
		}
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.TrimSpace(parameter), "q="); ok {
			weight, _ = strconv.ParseFloat(q, 64) // an unreadable weight is 0
		}
		if weight > highest {
			best, highest = primary, weight
		}
	}
	return best
}
