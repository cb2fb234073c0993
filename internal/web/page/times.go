package page

import (
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fermata-go/fermata/api"
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
func (v *Visit) ZoneName() string { return v.Zone.String() }

// Exact returns a time with its date in the viewer's time zone.
func (v *Visit) Exact(at time.Time) string {
	return at.In(v.Zone).Format(v.T("time.exact")) + " " + v.ZoneName()
}

// Clock returns the time of day, with the date if it is not today.
func (v *Visit) Clock(at time.Time) string {
	at, now := at.In(v.Zone), v.Now.In(v.Zone)
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04")
	}
	month := strings.Fields(v.T("time.months"))[at.Month()-1]
	if at.Year() == now.Year() {
		return v.T("time.day", at.Day(), month, at.Format("15:04"))
	}
	return v.T("time.date", at.Day(), month, at.Year(), at.Format("15:04"))
}

// utcTime is how the server writes a time in a sentence.
var utcTime = regexp.MustCompile(`\b\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)? UTC\b`)

// LocalTimes returns a sentence of the server with its times in the viewer's time zone.
func (v *Visit) LocalTimes(text string) string {
	return utcTime.ReplaceAllStringFunc(text, func(written string) string {
		layout := "2006-01-02 15:04:05 UTC"
		if len(written) < len(layout) {
			layout = "2006-01-02 15:04 UTC"
		}
		at, err := time.Parse(layout, written)
		if err != nil { // no such day
			return written
		}
		return v.Clock(at)
	})
}

// LocalProblem returns a problem with the times of its texts in the viewer's time zone.
func (v *Visit) LocalProblem(p *api.Problem) *api.Problem {
	local := *p
	local.Detail, local.Fields = v.LocalTimes(p.Detail), slices.Clone(p.Fields)
	for i := range local.Fields {
		local.Fields[i].Message = v.LocalTimes(local.Fields[i].Message)
	}
	return &local
}

// Ago returns how long ago a time was, in words, as an element that scripts keep current.
func (v *Visit) Ago(at time.Time) template.HTML {
	return v.timeElement(at, "ago", v.T("time.ago", v.span(v.Now.Sub(at))))
}

// In returns how long it is until a time, in words, as an element that scripts keep current.
func (v *Visit) In(at time.Time) template.HTML {
	left := at.Sub(v.Now)
	if left <= 0 {
		return v.timeElement(at, "in", v.T("time.now"))
	}
	return v.timeElement(at, "in", v.T("time.in", v.span(left)))
}

// Left returns how much time is left, in words, as an element that scripts keep current.
func (v *Visit) Left(at time.Time) template.HTML {
	left := at.Sub(v.Now)
	if left <= 0 {
		return v.timeElement(at, "left", v.T("time.overdue"))
	}
	return v.timeElement(at, "left", v.T("time.left", v.span(left)))
}

// At returns the time of day, as an element with the exact time.
func (v *Visit) At(at time.Time) template.HTML { return v.timeElement(at, "", v.Clock(at)) }

func (v *Visit) timeElement(at time.Time, rel, text string) template.HTML {
	attr := ""
	if rel != "" {
		attr = ` data-rel="` + rel + `"`
	}
	return template.HTML(`<time datetime="` + at.UTC().Format(time.RFC3339) + `" title="` + template.HTMLEscapeString(v.Exact(at)) + `"` + attr + `>` +
		template.HTMLEscapeString(text) + `</time>`)
}

// span returns a duration with one unit, such as "14 min".
func (v *Visit) span(d time.Duration) string {
	n, unit := int(d.Hours()/24), 3
	switch {
	case d < time.Minute:
		n, unit = max(int(d.Seconds()), 1), 0
	case d < time.Hour:
		n, unit = int(d.Minutes()), 1
	case d < 48*time.Hour:
		n, unit = int(d.Hours()), 2
	}
	return strconv.Itoa(n) + " " + strings.Fields(v.T("time.units"))[unit]
}

// Soon reports whether a deadline is within 15 minutes.
func (v *Visit) Soon(at time.Time) bool { return at.Sub(v.Now) < 15*time.Minute }

// Future reports whether a time has not come yet.
func (v *Visit) Future(at time.Time) bool { return at.After(v.Now) }

// Span returns a number of seconds in words.
func (v *Visit) Span(seconds float64) string {
	return v.span(time.Duration(seconds * float64(time.Second)))
}
