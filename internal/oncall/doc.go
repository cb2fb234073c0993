// Package oncall says who is on call: from a rota in the configuration, an iCalendar file or URL,
// or a schedule of PagerDuty.
//
//	schedules := map[string]oncall.Schedule{"finance": rota, "db": calendar}
//	people, err := schedules["db"].OnCall(ctx, time.Now())
//
// A [Directory] makes schedules usable as groups: oncall:db has the people that are on call at the
// time of the vote. A schedule that cannot be read has no members, so an error never lets someone
// decide.
package oncall
