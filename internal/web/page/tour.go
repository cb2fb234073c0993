package page

import (
	"net/http"
)

// tourCookie remembers that a person closed the tour.
const (
	tourCookie = "fermata_tour"
	tourMaxAge = 365 * 24 * 3600 // seconds
)

// Tour reports whether the page suggests what to try.
func (d layout) Tour() bool {
	if !d.Shell.Config.Tour {
		return false
	}
	_, err := d.Cookie(tourCookie)
	return err != nil
}

// CloseTour hides the tour in this browser.
func CloseTour(v *Visit) (Response, error) {
	http.SetCookie(v.W, &http.Cookie{
		Name: tourCookie, Value: "closed", Path: "/", MaxAge: tourMaxAge, HttpOnly: true, Secure: v.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
	return Redirect{To: "/inbox"}, nil
}
