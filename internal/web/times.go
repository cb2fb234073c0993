package web

import (
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// zoneCookie has the IANA name of the browser's time zone; app.js sets it.
const zoneCookie = "fermata_zone"

// zoneOf returns the time zone of the browser; UTC if it is not known.
func zoneOf(r *http.Request) *time.Location {
	c, err := r.Cookie(zoneCookie)
	if err != nil || len(c.Value) > 64 {
		return time.UTC
	}
	name, err := url.QueryUnescape(c.Value)
	if err != nil || name == "Local" {
		return time.UTC
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// ZoneName returns the name of the viewer's time zone.
func (v *visit) ZoneName() string { return v.Zone.String() }

// Exact returns a time with its date in the viewer's time zone.
func (v *visit) Exact(at time.Time) string {
	return at.In(v.Zone).Format("2006-01-02 15:04:05") + " " + v.ZoneName()
}

// Clock returns the time of day, with the date if it is not today.
func (v *visit) Clock(at time.Time) string {
	at, now := at.In(v.Zone), v.Now.In(v.Zone)
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04")
	}
	month := strings.Fields(v.t("time.months"))[at.Month()-1]
	if at.Year() == now.Year() {
		return v.t("time.day", at.Day(), month, at.Format("15:04"))
	}
	return v.t("time.date", at.Day(), month, at.Year(), at.Format("15:04"))
}

// Ago returns how long ago a time was, in words, as an element that scripts keep current.
func (v *visit) Ago(at time.Time) template.HTML {
	return v.timeElement(at, "ago", v.t("time.ago", v.span(v.Now.Sub(at))))
}

// In returns how long it is until a time, in words, as an element that scripts keep current.
func (v *visit) In(at time.Time) template.HTML {
	left := at.Sub(v.Now)
	if left <= 0 {
		return v.timeElement(at, "in", v.t("time.now"))
	}
	return v.timeElement(at, "in", v.t("time.in", v.span(left)))
}

// Left returns how much time is left, in words, as an element that scripts keep current.
func (v *visit) Left(at time.Time) template.HTML {
	left := at.Sub(v.Now)
	if left <= 0 {
		return v.timeElement(at, "left", v.t("time.overdue"))
	}
	return v.timeElement(at, "left", v.t("time.left", v.span(left)))
}

// At returns the time of day, as an element with the exact time.
func (v *visit) At(at time.Time) template.HTML { return v.timeElement(at, "", v.Clock(at)) }

func (v *visit) timeElement(at time.Time, rel, text string) template.HTML {
	attr := ""
	if rel != "" {
		attr = ` data-rel="` + rel + `"`
	}
	return template.HTML(`<time datetime="` + at.UTC().Format(time.RFC3339) + `" title="` + template.HTMLEscapeString(v.Exact(at)) + `"` + attr + `>` +
		template.HTMLEscapeString(text) + `</time>`)
}

// span returns a duration with one unit, such as "14 min".
func (v *visit) span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return v.t("time.seconds", max(int(d.Seconds()), 1))
	case d < time.Hour:
		return v.t("time.minutes", int(d.Minutes()))
	case d < 48*time.Hour:
		return v.t("time.hours", int(d.Hours()))
	}
	return v.t("time.days", int(d.Hours()/24))
}

// Soon reports whether a deadline is within 15 minutes.
func (v *visit) Soon(at time.Time) bool { return at.Sub(v.Now) < 15*time.Minute }

// Future reports whether a time has not come yet.
func (v *visit) Future(at time.Time) bool { return at.After(v.Now) }
