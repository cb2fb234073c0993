package tui

import (
	"fmt"
	"time"
)

// span formats a duration in two units.
func span(d time.Duration) string {
	d = d.Truncate(time.Second)
	hours, minutes, seconds := int(d.Hours()), int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(seconds, 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm %02ds", minutes, seconds)
	case hours < 24:
		return fmt.Sprintf("%dh %02dm", hours, minutes)
	}
	return fmt.Sprintf("%dd %dh", hours/24, hours%24)
}

// ago formats the time since an event in one unit.
func ago(since, now time.Time) string {
	d := now.Sub(since)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds ago", max(int(d.Seconds()), 0))
	case d < time.Hour:
		return fmt.Sprintf("%dm ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh ago", int(d.Hours()))
	}
	return fmt.Sprintf("%dd ago", int(d.Hours())/24)
}

// clockOf formats a time of day, with the date if it is another day.
func clockOf(t, now time.Time) string {
	t = t.In(now.Location())
	if y, m, d := t.Date(); y == now.Year() && m == now.Month() && d == now.Day() {
		return "at " + t.Format(time.TimeOnly)
	}
	return "on " + t.Format("Mon 2 Jan 15:04")
}

// urgentBelow is the time left below which a request is highlighted.
const urgentBelow = 15 * time.Minute

// timeLeft formats the time until the deadline, and reports whether it is short.
func timeLeft(deadline *time.Time, now time.Time) (text string, urgent bool) {
	if deadline == nil {
		return "", false
	}
	d := deadline.Sub(now)
	if d <= 0 {
		return "overdue", true
	}
	return span(d) + " left", d < urgentBelow
}
