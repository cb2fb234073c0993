package page

import "net/http"

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
	_, err := d.Cookie(d.cookieName(tourCookie))
	return err != nil
}

// CloseTour hides the tour in this browser.
func CloseTour(v *Visit) (Response, error) {
	http.SetCookie(v.W, v.cookie(tourCookie, "closed", tourMaxAge))
	return Redirect{To: "/inbox"}, nil
}
