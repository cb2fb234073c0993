package web

import "net/http"

// tourCookie remembers that a person closed the tour.
const (
	tourCookie = "fermata_tour"
	tourMaxAge = 365 * 24 * 3600 // seconds
)

// Tour reports whether the page suggests what to try.
func (d shell) Tour() bool {
	if !d.site.config.Tour {
		return false
	}
	_, err := d.Cookie(tourCookie)
	return err != nil
}

// closeTour hides the tour in this browser.
func (s *Site) closeTour(v *visit) (response, error) {
	http.SetCookie(v.w, &http.Cookie{
		Name: tourCookie, Value: "closed", Path: "/", MaxAge: tourMaxAge, HttpOnly: true, Secure: v.TLS != nil, SameSite: http.SameSiteLaxMode,
	})
	return redirect{To: "/inbox"}, nil
}
